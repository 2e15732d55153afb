// actors/parameters/checkpointer.hpp
//
// Writes snapshots in Caffe's files: copies the parameters from the node's store, gathers the solver state
// from all shards, says "copied" so that training goes on, then writes aside and renames. Where members may be lost, it
// writes nothing before all members have that version whole: else the others might go back, and train those clocks otherwise.
// One per node; worker 0's writes the regular ones, any survivor's the one after a peer was lost.
//
// Accepts  connect_checkpointer  from node
//          write_snapshot   from solver, node, caller
//          history_arrived  from server_shard, factor_broadcast, network_link   each chunk and slot once
//          floor_reached    from solver, node   what waits for this version can be written
//          go_back          from node   members are lost: what is being gathered will not be complete
//          shut_down        from node   ends it when everything that came before has been done
// Sends    copy_history     to the own server_shard and factor_broadcasts
//          send_frame       to network_link   gather_history
//          snapshot_copied  to solver, caller
//          snapshot_written to solver, node
// State    the one snapshot in work; those that wait to be written; the files of those that it has written and that stay.
// Fails    a full disk, a missing folder: snapshot_written carries the text; the file before stays whole, and no weights
//          are left without their state.
//          Solver state of another version, or a piece of it twice: logic error.
// Detached: it writes files.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/core/progress.hpp"
#include "actors/parameters/parameter_store.hpp"
#include "messages/link.hpp"
#include "messages/training.hpp"
#include "models/caffe.hpp"
#include "models/files/snapshot.hpp"

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace poseidon {

struct checkpointer_setup {
  std::size_t history_slots = 1;
  /// For snapshot_prefix and format, the learning rate's step, keep_snapshots.
  ::caffe::SolverParameter solver;
  std::shared_ptr<progress> display;  ///< is told each step; may be empty
};

/// Write the files of a snapshot whose names begin with `stem`.
struct snapshot_files {
  std::function<void(const std::string& stem, const parameter_arrays& values)> write_weights;
  std::function<void(const std::string& stem, const solver_state& state)> write_state;
  /// For a program that asks for it; may be empty.
  std::function<void(solver_state state)> take_state;
};

/// Again when routes have changed: it outlives the graph around it.
struct connect_checkpointer {
  snapshot_files files;  ///< called until the next of these messages, or the end
  std::shared_ptr<parameter_store> store;
  std::vector<port<send_frame>> links;  ///< by worker; empty at self
  port<copy_history> own_shard;
  std::vector<port<copy_history>> own_updaters;
  std::uint64_t epoch = 0;  ///< of the view
};

/// "<prefix>_iter_<n>", as Caffe names its snapshots; suffixes are added to it.
[[nodiscard]] std::string snapshot_stem(const std::string& prefix, std::uint64_t iteration);

/// The prefix of the model that is kept as the best: "<prefix>_best".
[[nodiscard]] std::string best_prefix(const std::string& prefix);

class checkpointer : public actor<checkpointer> {
 public:
  static constexpr const char* type_name = "checkpointer";
  using accepts = messages<connect_checkpointer, write_snapshot, history_arrived, floor_reached,
                           go_back, shut_down>;
  using sends = messages<copy_history, send_frame, snapshot_copied, snapshot_written>;

  checkpointer(actor_context context, checkpointer_setup setup);
  void on(const connect_checkpointer& m);
  void on(const write_snapshot& m);
  void on(const history_arrived& m);
  void on(const floor_reached& m);
  void on(const go_back& m);
  void on(const shut_down& m);

 private:
  struct work {
    write_snapshot order;
    parameter_arrays values;
    solver_state state;
    std::set<std::pair<chunk_id, std::uint32_t>> missing;  // chunk and slot
  };
  void gather(work& w);
  void copied();
  void write(const work& w);
  void give_up(const char* why);
  void drop(const write_snapshot& order, const char* why);
  using files_kept = std::deque<std::vector<std::filesystem::path>>;  // oldest first
  /// `same_weights`: a file that has these weights already; empty: there is none. `most`: of the snapshots in `kept`, with the
  /// new one, so many stay; 0: all. Returns  an error, or nothing.
  [[nodiscard]] std::string write_files(const work& w, const std::filesystem::path& stem,
                                        const std::filesystem::path& same_weights, files_kept& kept,
                                        std::size_t most);
  static void keep_newest(files_kept& kept, std::vector<std::filesystem::path> files,
                          std::size_t most);
  void wrote(const std::filesystem::path& path) const;
  void detail(const std::string& step) const;

  checkpointer_setup setup_;
  until_end<connect_checkpointer> neighbours_{this};
  until_end<std::unique_ptr<work>> work_{this};  // null: no snapshot is in work
  bool given_up_ = false;                        // a snapshot whose state was not complete
  std::deque<work> waiting_;                     // complete, oldest first
  version_id floor_{};                           // nobody goes back to before it
  bool ends_ = false;
  files_kept kept_, kept_best_;
  std::string newest_state_;  // that was written whole
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_checkpointer)
