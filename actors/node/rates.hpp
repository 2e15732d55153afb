// actors/node/rates.hpp
//
// How fast this node's links are while it trains, as link_watch computes it; the leader hears it and may choose other
// routes. A part of `node`.
#pragma once
#include "actors/node/node_core.hpp"
#include "actors/routes/link_watch.hpp"

#include <optional>

namespace poseidon {

class rates {
 public:
  explicit rates(node_core& core) : core_(core) {}

  /// The run has been built: its links can be watched.
  void begin();
  // Return what the leader is to hear.
  [[nodiscard]] std::optional<link_watch::rate> on(const link_flow& m);
  [[nodiscard]] std::optional<link_watch::rate> probe_heard(worker_id from, std::uint32_t round);
  /// Whether this node times its links: then answers to probes are for probe_heard.
  [[nodiscard]] bool probes() const { return watch_.probes(); }

 private:
  [[nodiscard]] bool waits_for_a_rise() const;
  [[nodiscard]] std::optional<link_watch::rate> follow(const link_watch::advice& a) const;
  [[nodiscard]] bool are_of_this_view() const;

  node_core& core_;
  link_watch watch_;
};

}  // namespace poseidon
