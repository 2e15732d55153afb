// actors/node/local_run.hpp
//
// What this node trains: its compiled nets, the actors on them, and the parameters, which outlive both when the view
// changes. A plain object of `node`.
#pragma once
#include "actors/membership/view.hpp"
#include "actors/membership/view_change.hpp"
#include "actors/node/kept_state.hpp"
#include "actors/node/node_setup.hpp"
#include "actors/node/training_graph.hpp"
#include "actors/run/compiled_run.hpp"
#include "models/plan/route_choice.hpp"

#include <memory>
#include <string_view>
#include <vector>

namespace poseidon {

class opened_images;  // data/image_store.hpp

class local_run {
 public:
  /// `setup` is the node's; its run and its node are used, and changed with the view.
  explicit local_run(node_setup& setup) : setup_(setup) {}

  /// Settles how many samples a clock has, on the node that begins the run.  Errors   as settle_global_batch.
  void settle_batch();
  /// On the first worker: the digests of what its program begins with, for the view.  Cost   a pass over all of it.
  void describe_program();
  /// On the first of several workers: what its data layers read, for the view.  Errors   as compile_run.
  void describe_data();
  /// Compiles the run as for worker `self`, while no other node waits for this one: what cannot be compiled is found now. build()
  /// takes what has been compiled, if it fits.
  /// Returns  the number of replicas.  Errors   as compile_run, compare_data.
  std::uint32_t try_out(worker_id self);
  /// The next run that is tried may be another one.
  void forget_trial() { tried_.reset(); }
  /// The run's first view here. `former`: as in frames::view.
  void begin_after(frames::former_view former) { former_ = std::move(former); }
  /// Compiles the run for worker `self`.  Errors   as compile_run, compare_data.
  void build(worker_id self);
  /// Tells the user what has been built, for these members.
  void describe(const std::vector<frames::member>& members);
  /// Says what the results equal: at the start, where routes have changed, and where nodes differ otherwise than when it was said last.
  void promise(const std::vector<frames::member>& members, bool changed);
  /// Fits the run to `view`, which `change` leads to. Where that view needs other nets or memory, the run is compiled again, and the
  /// parameters are copied from the old one, if that had them.
  /// The old graph has ended.  Errors   as compile_run; logic_bug: the parameters have another version.
  void rebuild(const view_change& change, const kept_state& kept, const agreed_view& view);
  /// Brings the parameters of the version that `change` begins with to the host: rebuild() does, and a node that leaves gives its part of
  /// them to those that join.  Returns  whether this node, which has this seat, has them: a newcomer has not, and who lacks that version
  /// has the one before. Errors   logic_bug, as rebuild.
  bool bring_home(const view_change& change, const kept_state& kept, seat_id self);
  /// How parameters were cut in the view before; null in the first one.
  [[nodiscard]] std::shared_ptr<const partition> before(const kept_state& kept) const;
  /// How they are cut in a view of so many members with these routes.
  [[nodiscard]] partition cut_for(std::size_t workers,
                                  const std::vector<std::uint8_t>& routes) const;
  /// Global index of the first sample of `clock`.
  [[nodiscard]] std::uint64_t first_sample_of(clock_id clock) const;
  /// The actors on it; the first time also those that last. Returns  those that are to be monitored.
  [[nodiscard]] const std::vector<caf::actor>& spawn(graph_context context);
  /// For the page; `change`: what this graph was rebuilt for, if it was, as `kept` says.
  void show_facts(const agreed_view& view, const std::vector<route_decision>& decisions,
                  const view_change& change, const kept_state& kept) const;

  [[nodiscard]] bool built() const { return graph_ != nullptr; }
  [[nodiscard]] const compiled_run& compiled() const { return *compiled_; }
  [[nodiscard]] const net& train() const { return compiled_->train.graph; }
  [[nodiscard]] const std::shared_ptr<parameter_store>& store() const { return compiled_->store; }
  [[nodiscard]] training_graph& graph() const { return *graph_; }
  /// They outlive the graph.
  [[nodiscard]] trainer the_trainer() const {
    return lasting_.the_caller ? trainer_of(lasting_.the_caller) : trainer_of(lasting_.the_solver);
  }
  [[nodiscard]] const handle<checkpointer>& checkpoints() const { return lasting_.checkpoints; }

  /// The newest version that every parameter has here that training changes. Empty: this node has not got all values of the view's
  /// first version.
  [[nodiscard]] std::optional<version_id> whole_version() const;
  /// How many test phases the run has done before this clock.
  [[nodiscard]] std::uint64_t test_phases_before(clock_id clock) const;
  /// A newer version than that of the first clock, which every parameter has here that training changes; empty: none.
  [[nodiscard]] std::optional<version_id> trained_version() const;
  /// All its actors, in the order in which they are to end.
  [[nodiscard]] std::vector<port<shut_down>> all() const;
  /// Handles are references: a circle of them would keep all actors. What they compute on is returned: they may still end.
  [[nodiscard]] std::shared_ptr<const void> drop();

  /// For the links' trace: the names of the chunks' layers, and of all layers.
  [[nodiscard]] const std::shared_ptr<by_id<chunk_id, std::string_view>>& chunk_layers() const {
    return chunk_layers_;
  }
  [[nodiscard]] const std::shared_ptr<by_id<layer_id, std::string_view>>& layer_names() const {
    return layer_names_;
  }

 private:
  [[nodiscard]] std::optional<std::uint64_t> least_version() const;

  node_setup& setup_;
  std::shared_ptr<compiled_run> compiled_;
  std::shared_ptr<compiled_run> tried_;    // before build()
  std::shared_ptr<opened_images> opened_;  // before build(): large data sets are opened once
  std::unique_ptr<training_graph> graph_;
  lasting_actors lasting_;                             // of graph_
  frames::former_view former_;                         // of the first view of this node
  std::uint64_t began_at_ = 0;                         // the run's first clock
  std::vector<progress::promise::difference> differ_;  // as it was said last
  std::shared_ptr<by_id<chunk_id, std::string_view>> chunk_layers_ =
      std::make_shared<by_id<chunk_id, std::string_view>>();
  std::shared_ptr<by_id<layer_id, std::string_view>> layer_names_ =
      std::make_shared<by_id<layer_id, std::string_view>>();
};

}  // namespace poseidon
