// actors/links/link_binding.hpp - what a link knows of the run: the two nodes, what the peer may send, which actors get it.
#pragma once
#include "actors/links/frame_check.hpp"
#include "messages/link.hpp"
#include "messages/port.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

namespace poseidon {

/// The actors to which the receiver hands frames. Where a port is empty such frames are dropped.
struct link_routes {
  port<gradient_arrived> shard;
  port<squares_arrived> shard_squares;
  port<sum_arrived> keeper;
  std::function<port<chunk_landed>(chunk_id)> gather;
  std::function<port<factors_landed>(layer_id)> factors;
  std::function<port<lowrank_landed>(layer_id)> lowrank;
  port<control_arrived> control;
  port<report_arrived> reports;
  port<shared_landed> shared;
  std::function<port<history_inherited>(chunk_id)> history_owner;  ///< install_history
  port<history_arrived> history_checkpointer;                      ///< history
  port<link_bound> bound;
  port<link_lost> lost;
  port<link_flow> flow;
};

/// Where fresh parameters lie in this node. Called by the receiver's thread.
class landing {
 public:
  virtual ~landing() = default;
  /// The place for `chunk` at `version`, 4 * its count bytes. The receiver fills it and then tells
  /// chunk_landed. Until that message the place holds a mixture, permanently if the link is lost meanwhile.
  /// Errors   bad_frame if this version cannot be due: ends the link, nothing is written.
  virtual std::span<std::byte> place(chunk_id chunk, version_id version) = 0;
  /// A reduced format: adds the received changes to the version before `version`. The receiver then tells chunk_landed.
  virtual void add_changes(chunk_id, version_id, std::span<const std::byte>) {}
  /// A mean of programs' gradients in a reduced format, which the frame names: writes it to the place for `version`. The receiver then tells
  /// chunk_landed.
  virtual void take_rounded(chunk_id, version_id, wire_format, std::span<const std::byte>) {}
  /// The place for the values of a frame of factors; the receiver then tells factors_landed. Empty: this node
  /// takes none.
  virtual std::span<std::byte> place_factors(worker_id, const frames::factors&) { return {}; }
  /// The place for the bytes of a frame of shared state; the receiver then tells shared_landed. Empty: this node takes none.
  virtual std::span<std::byte> place_shared(const frames::shared_state&) { return {}; }
};

/// What the run lets a peer say now, beyond what check_frame() knows. Called by the receiver's thread with
/// each header, before the payload is read.
class frame_gate {
 public:
  virtual ~frame_gate() = default;
  /// Errors   bad_frame: ends the link, the payload is not read.
  virtual void admit(const frame_header& h) = 0;
};

struct link_binding {
  frame_writer self;             ///< this node, and the view that this binding is of
  seat_id peer = no_seat;        ///< no_seat: a joiner does not know whom it has reached
  worker_id worker = no_worker;  ///< the peer, in that view
  link_limits limits;
  link_routes routes;
  std::shared_ptr<poseidon::landing> landing;
  std::shared_ptr<frame_gate> gate;  ///< null: every frame that passes check_frame() is admitted
  /// Members are lost: what waits to be sent belongs to the view before, and is not sent.
  bool goes_back = false;
  /// No frame of a view (frame_check.hpp) is sent or taken: what is to be sent, or comes, is thrown away.
  bool between_views = false;
  bool may_be_lost = false;  ///< the peer: the others go on without it
  bool fifo = false;  ///< frames with a payload go in their order of arrival, not by priority
};

}  // namespace poseidon
