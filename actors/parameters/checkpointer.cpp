#include "actors/parameters/checkpointer.hpp"

#include "actors/core/logic_bug.hpp"
#include "messages/float_payload.hpp"
#include "models/files/atomic_file.hpp"
#include "models/no_memory.hpp"
#include "models/solver/outer_steps.hpp"
#include "models/solver/solver_file.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

std::string snapshot_stem(const std::string& prefix, std::uint64_t iteration) {
  return prefix + "_iter_" + std::to_string(iteration);
}

std::string best_prefix(const std::string& prefix) {
  return prefix + "_best";
}

checkpointer::checkpointer(actor_context context, checkpointer_setup setup)
    : actor(context), setup_(std::move(setup)) {}

/// All actors of the graph before this one have ended, so nothing more comes from them.
void checkpointer::on(const connect_checkpointer& m) {
  if (*work_) give_up("its view is over.");
  neighbours_ = m;
  given_up_ = false;
}

/// What is being gathered will not be complete.
void checkpointer::give_up(const char* why) {
  const auto w = std::exchange(*work_, nullptr);
  neighbours_->store->set_gathering(std::nullopt);
  drop(w->order, why);
}

void checkpointer::detail(const std::string& step) const {
  if (setup_.display) setup_.display->detail("checkpointer: " + step);
}

void checkpointer::on(const write_snapshot& m) {
  if (m.epoch && *m.epoch != neighbours_->epoch) return drop(m, "its view is over.");
  auto fresh = std::make_unique<work>();
  fresh->order = m;
  if (!m.for_program) {
    try {
      fresh->values = neighbours_->store->copy(value(m.version));
    } catch (const no_such_version&) {
      // The node goes back to before that version, and has not told this actor yet. An order without an epoch is of no view.
      if (!m.epoch) throw;
      return drop(m, "a member was lost before it was copied.");
    }
    detail("copied the parameters of version " + std::to_string(value(m.version)));
  }
  given_up_ = *work_ != nullptr;
  work_ = std::move(fresh);
  auto& w = **work_;
  if (m.with_state) gather(w);
  if (w.missing.empty()) copied();
}

void checkpointer::gather(work& w) {
  const memory_for use("the solver's history in a snapshot");
  const auto version = w.order.version;
  const auto done = iteration_of(setup_.solver, value(version));
  w.state.iteration = done;
  // As Caffe counts it: at the rate of the last update.
  w.state.current_step = done == 0 ? 0 : current_step(setup_.solver, done - 1);
  w.state.data = {w.order.samples, w.order.test_phases};
  w.state.global_batch = setup_.solver.poseidon().global_batch();
  w.state.rule = name_of(shared_rule_of(setup_.solver).kind);
  w.state.outer_steps = setup_.solver.poseidon().outer_steps();
  w.state.history.resize(setup_.history_slots);
  const auto& store = *neighbours_->store;
  for (auto& slot : w.state.history)
    for (const auto p : store.parameters()) slot.emplace_back(store.current(p).size());
  for (const auto chunk : neighbours_->store->cut().chunks.ids())
    for (std::uint32_t slot = 0; slot < setup_.history_slots; ++slot)
      w.missing.emplace(chunk, slot);
  detail("waiting for " + std::to_string(w.missing.size()) + " pieces of solver state");
  neighbours_->store->set_gathering(value(version));
  tell(neighbours_->own_shard, copy_history{version});
  for (const auto& broadcast : neighbours_->own_updaters) tell(broadcast, copy_history{version});
  for (const auto& link : neighbours_->links)
    tell(link, send_frame{frames::gather_history{version}, {}, 0, neighbours_->epoch});
}

void checkpointer::on(const history_arrived& m) {
  if (given_up_) return;  // what was gathered before a peer was lost
  const auto piece = "solver state of chunk " + std::to_string(value(m.chunk)) + ", slot " +
                     std::to_string(m.slot);
  if (*work_ == nullptr) throw logic_bug(piece + " without a snapshot", value(m.version), 0);
  auto& w = **work_;
  if (m.version != w.order.version)
    throw logic_bug("the version of " + piece, value(m.version), value(w.order.version));
  if (w.missing.erase({m.chunk, m.slot}) == 0) throw logic_bug(piece + " twice", 2, 1);
  const auto& c = neighbours_->store->cut().chunks[m.chunk];
  auto& to = w.state.history[m.slot][value(c.parameter)];
  std::copy_n(floats(m.values).begin(), c.count,
              to.begin() + static_cast<std::ptrdiff_t>(c.offset));
  if (w.missing.empty()) copied();
}

void checkpointer::on(const floor_reached& m) {
  floor_ = std::max(floor_, m.version);
  while (!waiting_.empty() && waiting_.front().order.version <= floor_) {
    const auto w = std::move(waiting_.front());
    waiting_.pop_front();
    write(w);
  }
}

/// All members have this version whole, and train the clocks from there on anew.
void checkpointer::on(const go_back& m) {
  floor_ = {};
  on(floor_reached{m.version});
  for (const auto& w : std::exchange(waiting_, {}))
    drop(w.order, "a member was lost before all had its version.");
  given_up_ = true;
  if (*work_) give_up("a member was lost while it was gathered.");
}

void checkpointer::drop(const write_snapshot& order, const char* why) {
  detail("gives up the snapshot of version " + std::to_string(value(order.version)));
  tell(order.written, snapshot_written{order.version, {}, why, {}, {}});
}

void checkpointer::copied() {
  const auto w = std::exchange(*work_, nullptr);
  // Of one that was given up pieces may still come.
  if (!given_up_) neighbours_->store->set_gathering(std::nullopt);
  if (w->order.for_program) neighbours_->files.take_state(std::move(w->state));
  tell(w->order.copied, snapshot_copied{w->order.version, w->order.number});
  if (w->order.for_program) return;
  if (!w->order.at_floor || w->order.version <= floor_) return write(*w);
  detail("waits until all members have version " + std::to_string(value(w->order.version)));
  waiting_.push_back(std::move(*w));
}

void checkpointer::write(const work& w) {
  const auto& order = w.order;
  const auto& prefix = setup_.solver.snapshot_prefix();
  const auto iteration = iteration_of(setup_.solver, value(order.version));
  snapshot_written done{order.version, {}, {}, {}, {}};
  // The weights of the one serve as those of the other; the states differ, because they name them.
  std::filesystem::path same_weights;
  const auto write_as = [&](const std::string& stem, files_kept& kept, std::size_t most) {
    const auto path = weights_path(stem, setup_.solver.snapshot_format());
    const auto error = write_files(w, stem, same_weights, kept, most);
    if (error.empty())
      same_weights = path;
    else
      done.error = error;
    return path;
  };
  if (order.regular)
    done.path = write_as(snapshot_stem(prefix, iteration) + order.suffix, kept_,
                         setup_.solver.poseidon().keep_snapshots());
  if (order.best)
    done.best_path = write_as(snapshot_stem(best_prefix(prefix), iteration), kept_best_, 1);
  done.newest_state = newest_state_;
  tell(order.written, std::move(done));
}

std::string checkpointer::write_files(const work& w, const std::filesystem::path& stem,
                                      const std::filesystem::path& same_weights, files_kept& kept,
                                      std::size_t most) {
  const auto format = setup_.solver.snapshot_format();
  std::shared_ptr<void> shown;
  if (setup_.display)
    shown = setup_.display->working({"writing " + weights_path(stem, format), 0, {}});
  const std::filesystem::path weights = weights_path(stem, format),
                              state_file = state_path(stem, format);
  std::error_code ignored;
  const bool had_weights = std::filesystem::exists(weights, ignored);
  try {
    const memory_for use("the files of a snapshot");
    if (stem.has_parent_path()) std::filesystem::create_directories(stem.parent_path());
    if (same_weights.empty() || link_durably(same_weights, weights) != 0)
      neighbours_->files.write_weights(stem, w.values);
    wrote(weights);
    if (!w.order.with_state) return {};
    auto state = w.state;
    state.learned_net = weights;
    neighbours_->files.write_state(stem, state);
    wrote(state_file);
    newest_state_ = state_file;
    keep_newest(kept, {weights, state_file}, most);
    return {};
  } catch (const std::exception& e) {
    // Weights without their state resume nothing, and the disk may be full. Those of an earlier run have theirs.
    if (w.order.with_state && !had_weights) std::filesystem::remove(weights, ignored);
    auto error = in_words(e.what());
    return error.ends_with('.') ? error : error + ".";
  }
}

/// Only what this run has written is ever removed, and only once a newer snapshot is whole.
void checkpointer::keep_newest(files_kept& kept, std::vector<std::filesystem::path> files,
                               std::size_t most) {
  if (most == 0) return;
  kept.push_back(std::move(files));
  while (kept.size() > most) {
    std::error_code ignored;  // the user may have moved it away
    for (const auto& file : kept.front()) std::filesystem::remove(file, ignored);
    kept.pop_front();
  }
}

void checkpointer::wrote(const std::filesystem::path& path) const {
  std::error_code ignored;
  const auto bytes = std::filesystem::file_size(path, ignored);
  detail("wrote " + path.string() + ", " + std::to_string(bytes) + " bytes");
}

/// It comes past what waits in the mailbox, which may say that a snapshot can be written.
void checkpointer::on(const shut_down& m) {
  if (std::exchange(ends_, true)) return quit();
  tell_self(m);
}

}  // namespace poseidon
