// tests/actors/node/time_passes.hpp - nodes that wait for others: simulated time passes until something has happened.
#pragma once
#include "tests/actors/node/resumed_run.hpp"

#include <chrono>
#include <functional>
#include <set>
#include <string>

namespace poseidon::test {

/// The addresses of nodes a, b, ... of a rig.
inline std::set<std::string> hosts(const std::string& letters) {
  std::set<std::string> out;
  for (const char c : letters) out.insert(std::string(1, c) + ":7600");
  return out;
}

/// Lets time pass until `reached` holds; false: it does not within ten minutes.
inline bool until(node_rig& t, const std::function<bool()>& reached, int ticks = 30000) {
  for (; ticks > 0 && !reached(); --ticks) {
    for (int i = 0; i < 200 && !reached() && t.sim.step(); ++i) {
    }
    if (!reached()) t.sim.pass(std::chrono::milliseconds{20});
  }
  return reached();
}
inline bool until_said(node_rig& t, std::size_t by, const std::string& part) {
  return until(t, [&] { return t.nodes[by]->display->said(part); });
}
inline bool until_ended(node_rig& t, std::size_t n) {
  return until(t, [&] { return t.nodes[n]->result.has_value(); });
}

inline void train_in_a_cluster(node_rig& t, std::size_t nodes, std::uint64_t clocks,
                               std::uint32_t survive = 1) {
  t.clocks = clocks;
  t.survive = survive;
  t.cluster(nodes);
  REQUIRE(t.until_clock(5));
}

/// It ends because the others go on without it, and may join them again.
inline void is_left_out(node_rig& t, std::size_t n) {
  CAPTURE(n);
  REQUIRE(until_ended(t, n));
  CHECK(t.nodes[n]->exit_code() == 3);
  CHECK(t.nodes[n]->error().find("without") != std::string::npos);
  CHECK(!t.nodes[n]->result->others.empty());
}

/// poseidon-node go-on, on the machine of that node.
inline void say_go_on(node_rig& t, const std::string& at) {
  std::shared_ptr<tcp_socket> socket;
  link_identity user;
  user.listen_address = at;
  user.wants = link_identity::purpose::ask_to_go_on;
  (void)t.wiring->dial(at, user, socket);
}

/// As the node's links note it: they were not read for longer than the others wait for a silent node.
inline void has_slept(node_rig& t, std::size_t n) {
  for (const auto& [peer, counters] : t.nodes[n]->network->counters)
    counters->gap_ended_at = std::chrono::steady_clock::now().time_since_epoch().count();
}

inline void ends_well(node_rig& t, std::size_t n) {
  CAPTURE(n);
  REQUIRE(until_ended(t, n));
  const auto last = t.nodes[n]->display->last_lines();
  CAPTURE(last);
  CHECK(t.nodes[n]->error() == "");
  CHECK(t.nodes[n]->exit_code() == 0);
}

}  // namespace poseidon::test
