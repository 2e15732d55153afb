// actors/client/program.hpp
//
// What a node and the program around it share: the parameters that the program declares and where their first values lie, the
// gradients that it lends, which versions are here, and the order in which it needs them. No actor: any thread may use it as its
// members say.
#pragma once
#include "actors/client/clock_gate.hpp"
#include "actors/client/factor_places.hpp"
#include "actors/client/fresh_board.hpp"
#include "actors/client/lent_gradient.hpp"
#include "actors/client/newcomer_state.hpp"
#include "actors/client/program_calls.hpp"
#include "actors/client/program_views.hpp"
#include "actors/client/shared_state.hpp"
#include "actors/core/actor.hpp"
#include "actors/parameters/forward_places.hpp"
#include "actors/parameters/parameter_store.hpp"
#include "messages/client.hpp"
#include "models/files/snapshot.hpp"
#include "models/fingerprint.hpp"
#include "models/indexed.hpp"
#include "models/net/declared_net.hpp"
#include "models/optimizer_rule.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace poseidon {

/// Where the program's threads find the caller, from its start to its end.
class caller_address {
 public:
  struct ports {
    port<gradients_lent> lent;
    port<state_wanted> state;
    port<state_given> given;
    port<clock_reported> reported;
    port<loads_measured> loads;
    port<program_done> done;
  };
  void set(ports to) {
    const std::lock_guard lock(mutex_);
    to_ = std::move(to);
  }
  void tell(gradients_lent m) const { send(&ports::lent, std::move(m)); }
  void tell(state_wanted m) const { send(&ports::state, m); }
  void tell(state_given m) const { send(&ports::given, m); }
  void tell(clock_reported m) const { send(&ports::reported, m); }
  void tell(loads_measured m) const { send(&ports::loads, std::move(m)); }
  void tell(program_done m) const { send(&ports::done, m); }

 private:
  template <class M>
  void send(port<M> ports::*which, M m) const {
    const std::lock_guard lock(mutex_);
    if (to_.*which) tell_from_outside(to_.*which, std::move(m));
  }
  mutable std::mutex mutex_;
  ports to_;
};

/// Solver state that the program has asked for, on its way from the checkpointer to the program's thread.
class state_shelf {
 public:
  void put(solver_state state) {
    const std::lock_guard lock(mutex_);
    state_ = std::move(state);
    changed_.notify_all();
  }
  /// Empty: it has not come within `limit`. It leaves this object.
  [[nodiscard]] std::optional<solver_state> take(std::chrono::duration<double> limit) {
    std::unique_lock lock(mutex_);
    (void)changed_.wait_for(lock, limit, [&] { return state_.has_value(); });
    return std::exchange(state_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<solver_state> state_;
};

struct program {
  /// `first_values`: by parameter; null where another worker's count.
  program(std::vector<declared_parameter> parameters, std::vector<const float*> first)
      : declared(std::move(parameters)),
        first_values(std::move(first)),
        fresh(declared.size()),
        steps_made(declared.size()),
        places(std::make_shared<forward_places>(declared.size())) {
    for (const auto& p : declared)
      lent.push_back(std::make_shared<lent_gradient>(static_cast<std::size_t>(count(p.shape))));
  }

  const std::vector<declared_parameter> declared;
  const std::vector<const float*> first_values;  ///< read before version 0 is here
  fingerprint traits;                 ///< by what its gradients may differ from another program's
  std::vector<shared_memory> shared;  ///< set before the node starts
  state_in_flight shared_in_flight;   ///< and what a newcomer is given
  newcomer_state newcomers;
  /// It can give its state, and take the others'; set before the node starts.
  bool takes_newcomers = false;
  /// By parameter, and by what is shared: this worker has worker 0's bytes already. Empty on worker 0.
  std::vector<bool> has_parameters, has_shared;
  by_id<parameter_id, std::shared_ptr<lent_gradient>> lent;
  fresh_board fresh;
  optimizer_rule optimizer = optimizer_rule::none;  ///< whose steps the shards make
  /// Of its gradients: what it asks for, empty where it takes worker 0's; what worker 0 says, known when version 0 is here.
  std::optional<wire_format> wanted_wire;
  wire_format wire = wire_format::float32;
  /// By parameter, then array of state: what the optimizer has from before the run. Read before version 0 is here.
  by_id<parameter_id, std::vector<const float*>> first_state;
  /// By parameter: updates, those from before the run included; clocks in which nobody had a gradient are none.
  std::vector<std::atomic<std::uint64_t>> steps_made;
  state_shelf state;
  clock_gate clocks;
  std::shared_ptr<forward_places> places;
  caller_address caller;
  program_calls calls;
  std::atomic<std::int64_t> waited_ns{0};  ///< by the program's threads, for fresh values

  /// Where a version of a parameter lies. Valid from version 0 on.
  [[nodiscard]] const float* values(parameter_id parameter, std::uint64_t version) const {
    return std::as_const(*store).values(parameter, version).data();
  }
  /// The node's first one, before version 0 is here. Where routes change, values stay where they are.
  std::shared_ptr<parameter_store> store;
  factor_places factors;
  program_views views;
  /// The others go on without a worker that is lost. Then no clock begins before all of the version that it computes with is here: who has
  /// something of a version has to have all of it, or nobody could go back. Set before version 0 is here.
  std::atomic<bool> outlives_losses{false};
  /// Held while a gradient is lent, and while what has been lent moves to another view.
  std::mutex lending;

  /// Worker 0's.  Cost   a pass over all first values.
  [[nodiscard]] std::vector<frames::byte_digest> first_digests() const;
  /// Not worker 0's: fills has_parameters and has_shared, and expects the rest. Both lists are as long as this program's.
  void take_equal(const std::vector<frames::byte_digest>& parameters,
                  const std::vector<frames::shared_entry>& of_worker_0);

 private:
  [[nodiscard]] std::span<const std::byte> first_bytes(std::size_t parameter) const;
};

/// In what the program of this node and that of worker 0 differ, and what to do; empty: the lists are the same.
[[nodiscard]] std::string difference(const std::vector<declared_parameter>& here,
                                     const std::vector<declared_parameter>& of_worker_0);

}  // namespace poseidon
