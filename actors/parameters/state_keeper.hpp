// actors/parameters/state_keeper.hpp
//
// Has a copy of the solver state of chunks that other nodes own (models/plan/keepers.hpp), so that it is not lost with them. With float32 it
// costs no byte of the network: the owner sends this node the sum of a clock's gradients in place of the fresh values, and this actor
// applies the solver's rule to that sum, its own values and its own state, which gives the bits that the owner has. The fresh values lie in
// the parameter store, as if the owner had sent them. Where a parameter travels in a reduced format the sum is float32 all the same, and this actor
// has the exact values, too: the store gets the rounded steps towards them that the owner sends to others.
//
// Accepts  connect_keeper    from node
//          sum_arrived       from network_link    once per chunk and clock, clocks rising by one
//          history_inherited from network_link, node   solver state of a resumed run, or of the view before
//          release_history   from node            the last before shut_down, where the view changes
//          shut_down         from node
// Sends    chunk_fresh       to gradient_push     the fresh values are in the parameter store
//          history_released  to node
// State    per chunk: version, solver state, sums that wait for that state, exact values of a reduced one.
// Fails    values that are not those of the owner, by their checksum: one line with both checksums. A sum of a clock that is not the
//          next one: logic error (a peer's frame with such a number has already ended its link: peer_window.hpp).
// Detached: it computes.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/core/trace.hpp"
#include "actors/parameters/parameter_store.hpp"
#include "actors/parameters/solver_history.hpp"
#include "messages/link.hpp"
#include "messages/training.hpp"
#include "models/device/device.hpp"
#include "models/solver/solver_rule.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

struct state_keeper_setup {
  worker_id self{};
  clock_id first_clock{};  ///< of the view
  solver_rule rule;
  std::shared_ptr<const host_arithmetic> arithmetic;
  std::shared_ptr<parameter_store> store;
  by_id<chunk_id, std::size_t> awaited_state;    ///< as server_shard_setup's
  std::uint64_t former_states = 0;               ///< as server_shard_setup's
  by_id<parameter_id, std::string> names;        ///< for people
  by_id<parameter_id, std::string_view> layers;  ///< for the trace
  trace_lane* trace = nullptr;
};

/// Ports that exist only after all actors have been spawned.
struct connect_keeper {
  by_id<parameter_id, port<chunk_fresh>> gather;  ///< its gradient_push
};

class state_keeper : public actor<state_keeper> {
 public:
  static constexpr const char* type_name = "state_keeper";
  using accepts =
      messages<connect_keeper, sum_arrived, history_inherited, release_history, shut_down>;
  using sends = messages<chunk_fresh, history_released>;

  state_keeper(actor_context context, state_keeper_setup setup);
  void on(const connect_keeper& m);
  void on(const sum_arrived& m);
  void on(const history_inherited& m);
  void on(const release_history& m);
  void on(const shut_down& m);

 private:
  struct kept {
    std::uint64_t version = 0;
    std::deque<sum_arrived> waiting;
    std::vector<float> exact;  // of a reduced format, from the first update on; as the owner's
  };

  kept& at(chunk_id id);
  void apply_if_complete(chunk_id id);
  void apply(chunk_id id, kept& k, const sum_arrived& m);
  void begin_exact(chunk_id id, kept& k) const;
  void compare(chunk_id id, std::uint32_t here, const frames::summed_gradient& sum) const;

  state_keeper_setup setup_;
  until_end<connect_keeper> neighbours_{this};
  std::map<chunk_id, kept> chunks_;
  solver_history history_;
  // Of a reduced format, from one version to the next; nobody hears of it.
  std::vector<std::byte> step_;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_keeper)
