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

}  // namespace poseidon::test
