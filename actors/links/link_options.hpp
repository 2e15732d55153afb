// actors/links/link_options.hpp - what a link to one other node is opened with, and how messages name the peer.
#pragma once
#include "actors/links/link_binding.hpp"
#include "actors/links/link_counters.hpp"
#include "actors/links/link_event.hpp"
#include "messages/wire/buffer_pool.hpp"
#include "messages/wire/frame_seal.hpp"
#include "messages/wire/peer_name.hpp"
#include "messages/wire/socket.hpp"
#include "models/words.hpp"  // for seconds_text, which all that say a limit use

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace poseidon {

struct link_options {
  std::shared_ptr<tcp_socket> socket;  ///< after the handshake
  std::string address;                 ///< the peer's, as users know it: "10.0.0.7:7600"
  peer_kind kind = peer_kind::worker;  ///< the peer's
  std::optional<link_keys> keys;       ///< of the handshake; none: frames are not sealed
  link_binding binding;
  /// The peer opens its half when it has the run's view and has built its nets; from its first word on
  /// the silence limit holds.
  std::chrono::milliseconds first_word_limit{120000};
  std::chrono::milliseconds silence_limit{2000};
  /// Less than that: the limit follows the link between these two (silence_watch.hpp).
  std::chrono::milliseconds least_silence_limit{2000};
  std::chrono::milliseconds heartbeat{100};
  /// Of link_flow.
  std::chrono::milliseconds flow_interval{125};
  /// The link gives up a peer that takes nothing for this long while data waits for it, even if the
  /// peer can be heard: its reading half is stuck, or the network carries one direction only.
  std::chrono::milliseconds stall_limit{10000};
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  double rate_mbit_s = 0;  ///< at most this much is written; 0: as much as the line takes
  /// At most this much of frames with a payload; 0: no limit. Frames without one are not counted and do not wait for it.
  double budget_mbit_s = 0;
  std::size_t pool_bytes = link_pool_bytes;
  link_trace trace;
  std::shared_ptr<link_counters> counters = std::make_shared<link_counters>();
};

}  // namespace poseidon
