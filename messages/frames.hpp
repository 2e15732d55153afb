// messages/frames.hpp. Long because all kinds of frames are described in one place.
//
// What leaves a process, as plain structs: the vocabulary of wire.capnp for the code that does not care
// how it is encoded (codec.hpp does). A frame is one header plus raw payload bytes. Order: frames of one
// kind between two nodes arrive in the order sent; between kinds priority decides.
#pragma once
#include "messages/declared.hpp"
#include "messages/ids.hpp"
#include "models/fingerprint.hpp"
#include "models/optimizer_rule.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace poseidon {

/// Bytes and what keeps them alive; immutable once sent. An empty payload has no owner.
struct payload {
  std::shared_ptr<const void> owner;  ///< a pool gets its buffer back with the last copy
  std::span<const std::byte> bytes;
};

namespace frames {

/// "I am alive"; sent whenever a link has been quiet for a heartbeat interval.
struct heartbeat {};

/// One worker's part of a micro-batch of all workers.
struct share {
  std::uint64_t samples = 0;
  std::uint32_t replicas = 1;
};

/// A member of a view.
struct member {
  seat_id seat{};
  std::string address;           ///< "host:port" where it accepts links
  std::string fingerprint = {};  ///< models/fingerprint.hpp; of a witness empty

  friend bool operator==(const member&, const member&) = default;
};

/// Who kept the solver state until a view began, and how it was cut: the members of the view before, by worker, and its routes.
struct former_view {
  /// Of the first view: the leader alone. Empty: there was none, and the leader gives all first values.
  std::vector<seat_id> seats;
  std::vector<std::uint8_t> routes;
};

/// What the programs of a view give to the newcomers that begin with it: so many bytes, in pieces of shared_piece_bytes, as shared_state whose
/// index is that after the last entry. The first `own` ones are the oldest member's, of the others each member has the same.
struct given_state {
  std::uint64_t bytes = 0, own = 0;
  byte_digest digest = {};  ///< of those that all members have alike
};

/// What one data layer of the run reads.
struct data_set {
  std::uint32_t net = 0;  ///< 0: the train net; 1 and more: the test nets
  std::string layer;
  std::string sample;         ///< the tops' shapes without the batch axis, as people read them
  std::uint64_t records = 0;  ///< in an epoch
  bool operator==(const data_set&) const = default;
};

/// The leader to each node that joins: who takes part and what is trained. A joiner needs no file except its data.
struct view {
  std::uint64_t epoch = 0;
  std::uint64_t run = 0;        ///< as in link_identity
  seat_id you{};                ///< the receiver's own seat
  std::vector<member> members;  ///< by worker
  /// By rising seat: they vote on the next view, and train nothing.
  std::vector<member> witnesses;
  former_view before;
  /// The receiver joins a run that trains, and is no member yet: it gets ready for a view with it, and says join_ready.
  bool prospect = false;
  std::string solver;  ///< caffe::SolverParameter, serialised, its nets inside
  /// Not empty: no net is trained; the nodes exchange the gradients of these parameters, which programs around them compute.
  /// Then there is no solver.
  std::vector<declared_parameter> parameters;
  std::vector<shared_entry> shared;  ///< of the programs
  /// Programs may join later: those that train give them what is more than parameters.
  bool takes_newcomers = false;
  given_state given = {};  ///< as in next_view
  /// Of the programs, where shards make its steps.
  optimizer_rule optimizer = optimizer_rule::none;
  std::uint64_t seed = 0;
  clock_id first_clock{};
  std::uint64_t first_sample = 0;  ///< global index of the first clock's first sample
  std::uint64_t test_phases = 0;   ///< done by the run that this one resumes
  /// By parameter of the train net: 0 parameter_server, 1 factor_broadcast, 2 lowrank_4, 3 lowrank_8, 4 and 5 the same in bfloat16; empty: all 0.
  std::vector<std::uint8_t> routes;
  /// By parameter of the train net: 0 float32, 1 float16, 2 bfloat16, 3 int8, 4 int4; empty: all 0.
  std::vector<std::uint8_t> wire;
  bool watched = false;  ///< the first node shows the run: record spans, answer `watch`
  /// By layer of the train net: why it has its route, as a text for people; may end early.
  std::vector<std::string> reasons;
  /// Routes change when links do: nodes that broadcast factors measure whether a link has become faster.
  bool routes_follow_links = false;
  std::vector<share> shares;  ///< by worker; empty: the net's batch for each
  /// How many nodes may be lost at the same time without loss of solver state.
  std::uint32_t survive = 0;
  /// Solver state that no member has any more begins with zeros; else the run ends.
  bool zeroes_lost_state = false;
  std::uint64_t state_zeroed_at = 0;  ///< the last iteration at which that happened; 0: it has not
  /// Members of this run's views so far, by rising seat, one of each fingerprint.
  std::vector<member> kinds = {};
  std::vector<data_set> data_sets = {};  ///< that the first node reads; empty: not known
  /// Those of the first node, where shares are empty: a node without an option of its own takes the same number. 0: not
  /// known.
  std::uint32_t replicas = 0;
};

/// The first node to each other one before the view, where programs wait: how many are there, itself included.
struct gathering {
  std::uint32_t there = 0, wanted = 0;
};

/// The first node to each other one before the view, where shares of the batch are not to be equal, and to a newcomer before the run, where
/// shares follow speeds.
struct time_net {
  std::string solver;  ///< as in view
  std::uint64_t seed = 0;
  bool measure = false;  ///< else only the number of replicas is asked for
};

/// The answer to time_net.
struct net_timed {
  std::uint32_t replicas = 1;
  double samples_s = 0;  ///< 0: not measured
};

/// Each member to the leader: links to all members are up and the actors wait.
struct member_ready {
  std::uint32_t replicas = 1;  ///< of that node; with equal shares the same on all nodes
  std::uint64_t epoch = 0;     ///< of the view that it is ready for
  /// Where programs compute the gradients, in the run's first view: of which parameters the writer's first values are worker 0's, and which
  /// of view.shared; bits beyond the end are unset.
  std::vector<bool> has_parameters = {}, has_shared = {};
};

/// A node that joins a run that trains, to the leader: it has built all that it can build before it is a member.
struct join_ready {
  std::uint32_t replicas = 1;  ///< as member_ready's
};

/// A member to the leader: it wants to leave, and the others are to go on without it.
struct leave_wanted {
  std::string why;  ///< for people
};

/// A member of a view that has not begun, to the leader: the writer has no link to this newcomer any more.
struct suspect {
  seat_id seat{};
  std::string why;  ///< for people
};

/// The first node to all: every member is ready; go.
struct start_training {};

/// gradient_push to the shard that owns `chunk`. Payload: as many values as the chunk has, little-endian, in the format
/// that `step` names or, if that is float32, that the view gives its parameter; summed over the sender's replicas and micro-batches, not averaged.
struct push_gradient {
  chunk_id chunk{};
  clock_id clock{};
  /// The sender has no gradient of it in this clock, and the frame no payload.
  bool nothing = false;
  step_mark step{};  ///< of the sender's optimizer, where shards make its steps
};

/// A shard to every other one, with clip_gradients only, once per clock: the squares of all values of its
/// summed gradients. Payload: models/device/square_sum.hpp, 4096 bytes.
struct gradient_squares {
  clock_id clock{};
};

/// factor_broadcast to that of every other node. Payload: values `first` and following of u, then v, of this clock
/// (models/device/factors.hpp), float32.
struct factors {
  layer_id layer{};
  clock_id clock{};
  std::uint32_t rows = 0;  ///< of u and of v; 0, from a program: it has no gradient in this clock
  std::uint64_t first = 0;
  step_mark step{};  ///< as push_gradient's
};

/// Of a layer on a lowrank route (models/device/lowrank.hpp), from a lowrank_exchange to that of the worker that owns the layer's sums: this
/// worker's part of P or of Q; from the owner to all others: what it has made of all parts, P orthogonal, Q summed. Payload: P, then the
/// gradients of the layer's other parameters as they are; or Q; float32. In turn, for each clock P and then Q.
struct lowrank_factor {
  layer_id layer{};
  clock_id clock{};
  bool second = false;  ///< Q
};

/// A shard (or, before the first clock, node 0) to every worker. Payload: the chunk's values, in `format`; where that is float32, after the
/// first version, and the view gives its parameter a reduced format: what is to be added to the version before, in that format.
struct fresh_parameters {
  chunk_id chunk{};
  version_id version{};
  /// No worker had a gradient of it in the clock before, and the frame has no payload.
  bool nothing = false;
  /// Of the mean of programs' gradients that have come in it; else float32.
  wire_format format = wire_format::float32;
};

/// Node 0 to another one before the first clock: a part of what the programs share, where that node's has another digest. Payload: bytes `first`
/// and following, shared_piece_bytes of them, fewer at the end. In rising order of `index`, then `first`, none twice.
struct shared_state {
  std::uint32_t index = 0;  ///< in view.shared
  std::uint64_t first = 0;
};

/// A shard to each keeper of `chunk` (models/plan/keepers.hpp), in place of fresh_parameters: the keeper makes the same update
/// itself, and so has the chunk's solver state, too. Payload: the sum of all workers' gradients of `clock`, float32. The numbers of the
/// step are the shard's, so that both nodes compute with the same ones, whatever their libraries make of a learning rate's formula.
struct summed_gradient {
  chunk_id chunk{};
  clock_id clock{};
  float rate = 0, decay = 0, scale = 1;  ///< as in rule_step (models/solver/solver_rule.hpp)
  /// models/device/value_checksum.hpp, of the shard's values of the version that this makes.
  std::uint32_t checksum = 0;
};

/// To the shard that owns `chunk` and its keepers, or to every factor_broadcast of it. Node 0 sends it before the first clock of a
/// resumed run; when the routes have changed, the node that kept that state before. Payload: values `first` and following of
/// one array of the chunk's solver state, float32.
struct install_history {
  chunk_id chunk{};
  std::uint32_t slot = 0;
  std::uint64_t first = 0;
};

/// Node 0 to every shard: send the solver state that belongs to `version`. Answered by `history` frames.
struct gather_history {
  version_id version{};
};
struct history {
  chunk_id chunk{};
  std::uint32_t slot = 0;
  version_id version{};
};

/// Each worker's solver to node 0's: sums over its own passes, for display and test phases.
struct worker_report {
  clock_id clock{};
  std::int32_t test_net = -1;  ///< -1: training outputs
  std::uint32_t passes = 0;    ///< that the sums are over
  std::vector<double> sums;    ///< by output value, in net order
  std::uint64_t images = 0;    ///< trained since the view began
  /// Since the view began: how long some layer's update was under way, and how much of that time the streams were idle.
  std::uint64_t communication_ns = 0, exposed_ns = 0;
};

/// Any node to node 0: please end (Ctrl-C here, a failure here).
struct stop_requested {
  std::string reason;
};

/// To the leader: the user of this node wants a snapshot.
struct snapshot_requested {};

/// The leader to all: training ends at this version; finish the clocks below it, start none above.
struct stop_after {
  version_id version{};
  std::string reason;
};

/// To each peer, before closing on purpose, so that the end of the connection is no failure.
struct goodbye {
  std::string reason;  ///< empty: done as planned
  /// Whom the reason concerns.
  enum class cause : std::uint8_t {
    run = 0,       ///< all: the run cannot go on
    left_out = 1,  ///< the reader: the others go on without it, and it may join again
    writer = 2,    ///< the writer alone: it was left out. The reader has lost it, and may go on
    refused = 3,   ///< the reader, which is not let in, or asked for what the writer does not do
    released = 4   ///< one that leaves, the reader or the writer: the others train on without it
  };
  cause of = cause::run;
};

/// Bytes to time links with: the first node to each other one before the view; while training, from each to each as part
/// of no round. The payload is not used.
struct probe {
  std::uint32_t round = 0;
  bool last = false;  ///< of that round, to this node
};

/// The answer to a round's last probe.
struct probe_heard {
  std::uint32_t round = 0;
};

/// Each node to the first: its last clock is trained; it keeps serving the others until a goodbye comes.
struct worker_done {
  version_id version{};
  bool others_go_on = false;  ///< where programs compute: as in worker_left
};

/// The first node to each other one, where programs compute the gradients: that worker's program trains no further.
struct worker_left {
  seat_id left{};
  version_id version{};  ///< of its parameters
  /// It leaves the run: whoever trains a further clock does so without it. Else such a one has more batches, which is an error.
  bool others_go_on = false;
};

/// The first node to each other one, every second while it shows the run: send a report each interval.
struct watch {
  std::int64_t sent_ns = 0;  ///< the writer's now_ns()
  std::uint32_t interval_ms = 1000;
};

/// The answer to watch. Payload: a node_report (messages/node_report.hpp).
struct report {};

/// The first node to all: begin no further clock, and say which would be the next.
struct hold_training {};

/// The answer to hold_training; and, with `drained`, to drain: every clock before `clock` is trained and this
/// node's parameters are at that version.
struct worker_paused {
  clock_id clock{};
  bool drained = false;
};

/// The leader to all: another view holds from `clock` on, which no node begins before the members of that view have rebuilt
/// their graphs. Train what comes before.
struct drain {
  clock_id clock{};
  bool for_newcomers = false;  ///< programs give what these need (given_state)
};

/// Each worker to the first, once, where programs compute the gradients: its program can give these as factors. By parameter:
/// their rows in a clock; 0: only as a whole.
struct factor_offer {
  std::vector<std::uint32_t> rows;
};

/// Whoever has seen the members decide to all of them, and to those that leave: this is the next view. Build its graph; or leave,
/// if you are no member of it. Another one may replace it before it has begun.
struct next_view {
  std::uint64_t epoch = 0;
  clock_id first_clock{};  ///< it holds from this clock on, with the parameters of that version
  std::vector<member> members;       ///< by worker
  std::vector<std::uint8_t> routes;  ///< as in view
  /// Where programs compute the gradients: by parameter, the rows that its factors have at most on one worker in a clock; 0
  /// for a parameter that stays on the server. Empty: all 0.
  std::vector<std::uint32_t> factor_rows = {};
  std::vector<share> shares = {};  ///< as in view
  std::string why = {};            ///< for people
  /// Members of views before that are gone without having left, by rising seat: nothing is expected from them.
  std::vector<seat_id> lost = {};
  /// It begins with iteration 0 like the view before it, and all members have got all values already.
  bool all_have_values = false;
  std::vector<member> witnesses = {};  ///< as in view
  /// Members that have not the version of `first_clock` whole, by rising seat: those that have it give it to them. Of programs alone, of
  /// which one may have made its step with it already.
  std::vector<seat_id> lacking = {};
  /// To programs that come with it, by those that were there before. No bytes: none come, or the programs are about to end.
  given_state given = {};
};

/// An attempt to decide the next view. Higher ballots overrule lower ones; two proposers never have the same one.
struct ballot {
  std::uint32_t round = 0;  ///< 0: none
  seat_id seat{};           ///< of the proposer
  auto operator<=>(const ballot&) const = default;
};

/// A member to all others: it wants to decide which view follows that of `epoch` (actors/membership/ballot_box.hpp).
struct view_prepare {
  std::uint64_t epoch = 0;
  ballot number;
};

/// The answer: no ballot below `promised` is accepted any more. Above `number`: refused, and the rest is empty.
struct view_promise {
  std::uint64_t epoch = 0;
  ballot number, promised;
  ballot accepted = {};  ///< the highest that the writer has accepted; round 0: none
  next_view value = {};  ///< of that ballot
  /// The writer has all parameters of `version`, and will have no newer ones in this view. A witness has none, and always waits.
  bool whole = false;
  version_id version{};
  bool drained = false;  ///< it waits for the next view before the clock that all have agreed on
  std::vector<seat_id> hears = {};  ///< whom the writer hears, by rising seat
  std::vector<seat_id> dead = {};   ///< whose process is proved to have ended
};

/// The proposer to all members: this is to be the next view.
struct view_accept {
  std::uint64_t epoch = 0;
  ballot number;
  next_view value;
};

/// The answer. `promised` above `number`: refused.
struct view_accepted {
  std::uint64_t epoch = 0;
  ballot number, promised;
};

/// Each node to the first, a few times a second while there is much to send, else about once a second if it asks its
/// links: the rate of all its links together.
struct send_rate {
  double mbit_s = 0;
  bool probed = false;  ///< timed with probes; false: taken from what training sent
};

}  // namespace frames

using frame_header = std::variant<
    frames::heartbeat, frames::view, frames::member_ready, frames::start_training,
    frames::push_gradient, frames::fresh_parameters, frames::install_history,
    frames::gather_history, frames::history, frames::worker_report, frames::stop_requested,
    frames::snapshot_requested, frames::stop_after, frames::goodbye, frames::worker_done,
    frames::gradient_squares, frames::factors, frames::probe, frames::probe_heard, frames::watch,
    frames::report, frames::hold_training, frames::worker_paused, frames::drain, frames::next_view,
    frames::join_ready, frames::leave_wanted, frames::send_rate, frames::time_net,
    frames::net_timed, frames::worker_left, frames::factor_offer, frames::suspect,
    frames::view_prepare, frames::view_promise, frames::view_accept, frames::view_accepted,
    frames::summed_gradient, frames::shared_state, frames::gathering, frames::lowrank_factor>;

}  // namespace poseidon
