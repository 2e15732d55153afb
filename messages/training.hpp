// messages/training.hpp
//
// What the actors of one node say to each other while they train. A pass is one forward (and, in training,
// backward) of one micro-batch through one replica; messages about it travel along the edges of the net.
#pragma once
#include "messages/frames.hpp"
#include "messages/ids.hpp"
#include "messages/port.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

struct batch;  // models/device/device.hpp; messages only carry it

/// Which pass. Within one replica and net, passes follow each other and never overlap in a layer.
struct pass_id {
  clock_id clock{};  ///< at staleness 0 also the parameter version that the pass computes with
  std::uint32_t index = 0;  ///< micro-batch within the clock; test nets: test batch in the phase
  std::uint64_t first_sample = 0;  ///< global index of its first sample

  friend bool operator==(const pass_id&, const pass_id&) = default;
};

// -- the pass through the net ---------------------------------------------------------------------------

/// solver -> data_source: let this pass begin. Sent when the pass before it has been issued everywhere.
struct start_pass {
  pass_id pass;
};

/// data_source -> the data layer: its values, shared with the data source's pool.
struct batch_ready {
  pass_id pass;
  std::shared_ptr<const batch> values;
};

/// layer -> the consumer of one of its tops: that top is being computed, by a stream that keeps the order.
struct bottom_ready {
  pass_id pass;
};

/// layer -> the producer of one of its bottoms: that diff is being computed. Sent for every bottom, also
/// where no diff is needed and in test passes: it says that the bottom's data are no longer read.
struct top_diff_ready {
  pass_id pass;
};

/// stream, copy_out -> layer: a kernel that was issued with `reply` has completed, and its results for the host have
/// arrived.
struct work_done {
  pass_id pass;
  bool backward = false;
  std::vector<float> outputs;  ///< forward of a layer whose tops are net outputs: their values
};

/// layer -> solver: all of a data layer's pass is issued; the next may start.
struct pass_issued {
  replica_id replica{};
  std::int32_t test_net = -1;  ///< -1: the train net
  pass_id pass;
};

/// solver -> layers of the train net where its passes turn back: begin no pass of clock `from` or of a later one, unless one of that
/// clock has begun there. Nothing of a clock leaves this node before its passes turn. Empty: begin all.
struct hold_passes {
  std::optional<clock_id> from;
};
/// layer -> solver: it does. `begun`: it has begun a pass of clock `from` already.
struct passes_held {
  clock_id from{};
  bool begun = false;
};

/// layer -> solver: values of net outputs of one pass.
struct outputs_ready {
  replica_id replica{};
  std::int32_t test_net = -1;
  pass_id pass;
  std::uint32_t output = 0;  ///< place in the net's list of outputs, of the first value
  std::vector<float> values;
};

/// stream -> solver: a loss of this pass is NaN or infinite; `layer` produced the first such value.
struct nonfinite_found {
  pass_id pass;
  std::string layer;
};

// -- gradients out, parameters in -----------------------------------------------------------------------

/// layer -> gradient_push: this replica's gradient of the layer is complete in host memory.
struct backward_done {
  replica_id replica{};
  pass_id pass;
};

/// gradient_push -> layer, where several replicas have several passes under way: this one's gradient is summed,
/// the next one may be written to the same memory.
struct gradient_taken {
  pass_id pass;
};

/// gradient_push -> every layer that reads its parameters: version `version` can be computed with.
struct parameters_fresh {
  version_id version{};
  /// With outer steps: updates that this node alone has made since that version.
  std::uint32_t own_updates = 0;
};

/// gradient_push -> server_shard, once, before the first clock: take this chunk's initial values.
struct install_chunk {
  chunk_id chunk{};
  version_id version{};
};

/// server_shard, state_keeper -> gradient_push of the same node: the chunk's new values lie at their place in the parameter store.
struct chunk_fresh {
  chunk_id chunk{};
  version_id version{};
  bool nothing = false;  ///< no worker had a gradient of it: its place has no values
};

/// gradient_push -> solver, caller: this layer's parameters have reached `version` on this node.
struct layer_fresh {
  layer_id layer{};
  version_id version{};
  bool nothing = false;  ///< no worker had a gradient of them in the clock before
};

/// solver -> gradient_push, factor_broadcast of side branches: all parameters have reached `version` on this node.
struct parameters_whole {
  version_id version{};
};

// -- the run --------------------------------------------------------------------------------------------

/// node -> solver: begin with this clock.
struct begin_training {
  clock_id first_clock{};
};

/// node -> solver: training ends at this version; finish the clocks below it, start none above.
struct finish_after {
  version_id version{};
  std::string reason;
};

/// solver -> node: this node has nothing left to train; its parameters are at `version`.
struct training_done {
  version_id version{};
  std::uint64_t images = 0;
  std::string snapshot_error;  ///< of the last snapshot; empty: it is written, or none was due
  bool others_go_on = false;   ///< of a program: as in frames::worker_left
};

/// solver -> node: training cannot go on (NaN, a broken source). One line for the user and an exit code.
struct training_failed {
  std::string text;
  int exit_code = 1;
};

/// checkpointer -> solver: everything is copied; training may go on while the files are written.
struct snapshot_copied {
  version_id version{};
  std::uint32_t number = 0;  ///< of the order
};

/// checkpointer -> solver or node: the files are written, or could not be.
struct snapshot_written {
  version_id version{};
  std::string path;   ///< of the .caffemodel
  std::string error;  ///< empty: written
  /// The newest .solverstate that the writer has written in this run; empty: none.
  std::string newest_state;
  /// Of the .caffemodel that is kept as the best one so far; empty: this one is not.
  std::string best_path = {};
};

/// solver (leader) -> checkpointer: write the parameters of `version`; none changes until it is copied.
/// node -> checkpointer, when a peer is lost: write `version` without solver state, part of which is lost with the peer.
struct write_snapshot {
  version_id version{};
  std::uint64_t samples = 0;      ///< global index of the next one to train on
  std::uint64_t test_phases = 0;  ///< that have been run
  bool with_state = true;
  port<snapshot_copied> copied;
  port<snapshot_written> written;
  bool regular = true;  ///< under the name of its iteration
  bool best = false;    ///< in place of the best one so far
  /// After the name: other nodes may be writing files of the same names.
  std::string suffix = {};
  bool for_program = false;  ///< only the state, for a program's memory: snapshot_files::take_state
  /// Members may be lost, and the others go back to before this version: it is written when floor_reached says that they do not.
  bool at_floor = false;
  std::uint32_t number = 0;  ///< of the order; snapshot_copied says it again
  /// Of the view that the order is of: it may come when that view is over. Empty: it is of none.
  std::optional<std::uint64_t> epoch = {};
};

/// solver, node -> checkpointer: nobody goes back to before this version any more, because all members have it whole.
struct floor_reached {
  version_id version{};
};

/// checkpointer -> server_shard, factor_broadcast: send the solver state at `version` of all your chunks to me.
struct copy_history {
  version_id version{};
};

/// node -> solver: begin no clock that has not begun, and say which that is. `epoch`: of the view, which the answer says again:
/// where a member is lost, an answer may come when another view has begun.
struct hold_clocks {
  std::uint64_t epoch = 0;
};
struct clocks_held {
  clock_id clock{};
  std::uint64_t epoch = 0;
};

/// node -> solver: train all clocks before this one, wait for their parameters, then for resume_training.
struct pause_at {
  clock_id clock{};
  std::uint64_t epoch = 0;     ///< as in hold_clocks
  bool for_newcomers = false;  ///< a program gives what these need before it has paused
};
/// solver -> node: this node has paused. No work of the clocks before `version` is under way.
struct training_paused {
  version_id version{};
  std::uint64_t test_phases = 0;  ///< that have been run
  std::uint64_t epoch = 0;
};
struct resume_training {};

/// node -> solver: a member is lost. What is under way will not be complete: begin nothing more, and say nothing of it.
struct give_up_clocks {};
/// solver -> node: it has. Everything that it has said of the clocks that were under way came before this.
struct clocks_given_up {};
/// node -> solver, checkpointer: the actors that trained have ended. Training goes on from this version, as after a pause.
struct go_back {
  version_id version{};
};

/// By chunk, then slot: the solver state of the chunk's values.
using chunk_histories = std::map<chunk_id, std::vector<std::vector<float>>>;

/// server_shard, factor_broadcast, state_keeper -> node: all solver state, which the sender gives away.
struct history_released {
  std::shared_ptr<const chunk_histories> history;
  /// A state_keeper's, by owner: copies of the state of chunks that another node owns, which gives that state away itself unless it is
  /// lost. Then there is no `history`.
  std::map<worker_id, std::shared_ptr<const chunk_histories>> copies = {};
  /// As of which; empty: the newest of each chunk.
  std::optional<version_id> version = std::nullopt;
};
/// node -> server_shard, factor_broadcast, state_keeper: training has paused; give the solver state away, then end.
struct release_history {
  port<history_released> to;
  /// As of which version; empty: the newest. An older one is there only where the run keeps state (--survive).
  std::optional<version_id> version = std::nullopt;
};

/// signal or stop request -> node -> solver (leader): end soon, at a clock of the solver's choice.
struct stop_soon {
  std::string reason;
};

/// signal or request -> node -> solver (leader): write a snapshot after the clock in work, and go on.
struct snapshot_soon {};

/// solver (leader) -> node: the choice, to be told to every worker.
struct stop_decided {
  version_id version{};
  std::string reason;
};

/// node -> every actor, in order, at the end.
struct shut_down {};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::start_pass)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::batch_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::bottom_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::top_diff_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::work_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::pass_issued)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::hold_passes)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::passes_held)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::outputs_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::nonfinite_found)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::backward_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::parameters_fresh)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::install_chunk)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::chunk_fresh)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::layer_fresh)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::parameters_whole)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::begin_training)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::finish_after)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::training_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::training_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::write_snapshot)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::floor_reached)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::snapshot_copied)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::snapshot_written)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::copy_history)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::shut_down)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::gradient_taken)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::hold_clocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::clocks_held)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::pause_at)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::training_paused)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::resume_training)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::give_up_clocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::clocks_given_up)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::go_back)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::history_released)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::release_history)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::stop_soon)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::snapshot_soon)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::stop_decided)
