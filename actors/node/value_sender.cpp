#include "actors/node/value_sender.hpp"

#include "actors/node/node.hpp"
#include "actors/parameters/first_values.hpp"
#include "actors/run/compile_run.hpp"
#include "messages/wire/codec.hpp"

#include <algorithm>
#include <future>
#include <utility>

namespace poseidon {

namespace {

void copy_first_values(const program& from, parameter_id p, std::uint64_t version,
                       parameter_store& store) {
  const auto to = store.values(p, version);
  std::copy_n(from.first_values[value(p)], to.size(), to.begin());
}

bool is_set(const std::vector<bool>& bits, std::size_t i) {
  return i < bits.size() && bits[i];
}

}  // namespace

void value_sender::show() {
  const auto& setup = core_.setup;
  if (core_.view().others().empty()) return;
  const auto& view = core_.view();
  const bool gives = view.leads();  // of the first view: newcomers never lead
  const auto slots = state_arrays_at(*setup.run, setup.run->first_clock);
  long_task task;
  task.what = gives ? "sending the parameters" : "receiving the parameters";
  task.in = long_task::unit::bytes;
  task.total =
      first_value_bytes(core_.run.store()->cut(), slots, view.self(), gives, setup.run->workers);
  const auto before = setup.records.view->own().carried();
  task.done = [view = setup.records.view, before, gives] {
    const auto now = view->own().carried();
    return gives ? now.bytes_out - before.bytes_out : now.bytes_in - before.bytes_in;
  };
  shown_ = setup.display->working(std::move(task));
}

namespace {

/// The arrays of a file as one actor that had all of them would have kept them. They are let go one after the other.
std::shared_ptr<const chunk_histories> state_of(std::vector<parameter_arrays> slots,
                                                const partition& cut) {
  auto out = std::make_shared<chunk_histories>();
  for (auto& slot : slots) {
    for (const auto id : cut.chunks.ids()) {
      const auto& c = cut.chunks[id];
      const auto values = std::span(slot[value(c.parameter)]).subspan(c.offset, c.count);
      (*out)[id].emplace_back(values.begin(), values.end());
    }
    slot = {};
  }
  return out;
}

}  // namespace

void value_sender::make_first_values() {
  const auto& setup = core_.setup;
  const auto& run = core_.run;
  auto& store = *run.store();
  const auto version = setup.run->first_clock;
  std::shared_ptr<void> reading;
  if (!setup.first.weights.empty()) {
    const auto& file =
        setup.first.resume.empty() ? setup.first.weights.front() : setup.first.resume;
    reading = poseidon::show(display_of(setup), {"reading " + file.string(), 0, {}});
  }
  if (setup.around)
    for (const auto p : store.parameters()) copy_first_values(*setup.around, p, version, store);
  else
    write_first_values(run.train(), setup.run->seed, setup.first.weights, version, store);
  for (const auto p : store.parameters()) store.publish(p, version);
  const auto alone = std::make_shared<const partition>(run.cut_for(1, {}));
  std::vector<parameter_arrays> state;
  const auto rule = rule_of(*setup.run);  // programs resume no files
  if (!setup.first.resume.empty() && rule)
    state = read_solverstate(setup.first.resume, run.train(), rule->kind).history;
  core_.kept.begin_with(alone, state_of(std::move(state), *alone));
}

namespace {

std::vector<worker_id> newcomers_of(const agreed_view& view) {
  std::vector<worker_id> out;
  for (const auto& m : view.members)
    if (view.before.empty() ? m.seat != view.leader() : view.is_given_values(m.seat))
      out.push_back(view.worker_of(m.seat));
  return out;
}

}  // namespace

view_step value_sender::step_to(const partition& cut) const {
  const auto& view = core_.view();
  const bool is_first = view.before.empty();  // then the leader gives all
  return {.before = *core_.kept.before(),
          .now = cut,
          .former_self = is_first ? view.self() : view.former_worker_of(view.seat),
          .self = view.self(),
          .newcomers = newcomers_of(view),
          .lost = view.former_without_values(),
          .zeroes_lost_state = core_.setup.run->zeroes_lost_state};
}

void value_sender::hand_over() {
  const auto& view = core_.view();
  const bool leaves = view.self() == no_worker;
  const auto cut = leaves ? core_.run.cut_for(view.members.size(), core_.change.next().routes)
                          : core_.run.store()->cut();
  // All members have rebuilt, so gradients and factors may follow the solver state on every link.
  if (view.leads()) start_others();
  const auto step = step_to(cut);
  make_means_again();
  // Values first: a newcomer computes with them, and needs state only at the end of its first clock.
  give_values(step);
  if (core_.setup.around && view.leads() && !core_.begun) give_shared(step.newcomers);
  if (core_.setup.around && !view.before.empty()) give_program_state(step);
  give_state(step);
  if (leaves || view.is_given_values(view.seat)) return;
  for (const auto chunk : cut.chunks.ids()) landed(chunk);
}

void value_sender::give_state(const view_step& step) {
  const auto arrays = state_arrays_at(*core_.setup.run, value(core_.view().first_clock));
  if (arrays == 0) return;
  std::vector<std::shared_ptr<const chunk_histories>> copies;
  for (const auto w : step.lost)
    if (auto of_lost = core_.kept.copies_of(w)) copies.push_back(std::move(of_lost));
  if (step.zeroes_lost_state && !step.lost.empty())
    copies.push_back(zeros_for_lost(core_.run.train(), step, arrays));
  give(handover(core_.run.train(), step, core_.kept.histories(), copies));
}

/// Those that leave give their solver state away now, and end.
void value_sender::start_others() const {
  const auto& view = core_.view();
  core_.members.broadcast(frames::start_training{});
  for (const auto seat : view.before)
    if (!view.has(seat)) core_.members.send(seat, send_frame{frames::start_training{}, {}, 0});
}

/// Means that were made of factors lie where this node's program has them, and it may have stepped with them.
void value_sender::make_means_again() const {
  const auto& view = core_.view();
  if (view.lacking.empty() || view.is_given_values(view.seat)) return;
  const auto& store = core_.run.store();
  const auto version = value(view.first_clock);
  const auto arithmetic = core_.setup.node.compute->arithmetic();
  std::async(std::launch::async, [&] {
    arithmetic->enter_thread(1);
    using is = parameter_store::mean_is;
    for (const auto p : store->parameters()) {
      if (store->mean(p, version) != is::with_program) continue;
      core_.setup.around->factors.make_mean_again(p, clock_id{version - 1}, *arithmetic,
                                                  store->values(p, version));
      store->set_mean(p, version, is::here);
    }
  }).get();
}

/// Each member of the view before gives newcomers an equal part of all values.
void value_sender::give_values(const view_step& step) const {
  if (step.newcomers.empty()) return;
  const auto& store = core_.run.store();
  const version_id version{value(core_.view().first_clock)};
  for (const auto chunk : step.now.chunks.ids()) {
    if (donor_of(chunk, step.before.by_owner.size(), step.lost) != step.former_self) continue;
    const auto& c = step.now.chunks[chunk];
    const bool nothing =
        store->mean(c.parameter, value(version)) == parameter_store::mean_is::nothing;
    payload values;
    if (!nothing)
      values = {store, std::as_bytes(store->current(c.parameter).subspan(c.offset, c.count))};
    for (const auto w : step.newcomers)
      if (!is_set(ready_of(w).has_parameters, value(c.parameter)))
        core_.members.send(w, {frames::fresh_parameters{chunk, version, nothing}, values, 0});
  }
}

/// What a node that comes has said; on a node that does not lead nothing.
const frames::member_ready& value_sender::ready_of(worker_id w) const {
  static const frames::member_ready nothing;
  const auto found = core_.ready.find(core_.view().seat_of(w));
  return found == core_.ready.end() ? nothing : found->second;
}

/// The links send it from the program's memory, after what they say of the run, and let go of it piece by piece.
void value_sender::give_shared(const std::vector<worker_id>& newcomers) const {
  constexpr std::uint64_t after_control = 1;
  const auto& from = core_.setup.around;
  const auto in_use = std::shared_ptr<const void>(
      from.get(), [from](const void*) { from->shared_in_flight.arrived(1); });
  from->shared_in_flight.expect(1);
  for (const auto w : newcomers) {
    const auto& has = ready_of(w).has_shared;
    for (std::uint32_t i = 0; i < from->shared.size(); ++i) {
      if (is_set(has, i)) continue;
      const std::span<const std::byte> bytes = from->shared[i].bytes;
      for (const auto first : pieces_of(bytes.size())) {
        const auto size = std::min<std::size_t>(bytes.size() - first, shared_piece_bytes);
        const payload piece{in_use, bytes.subspan(first, size)};
        core_.members.send(w, {frames::shared_state{i, first}, piece, after_control});
      }
    }
  }
}

/// To those that come, what their programs need beside the parameters: each member of the view before an equal part. Where this program's
/// state is another one than the first one's, it has trained something else, and its pieces would not fit the others'.
void value_sender::give_program_state(const view_step& step) const {
  const auto& given = core_.change.next().given;
  if (given.bytes == 0 || step.former_self == no_worker) return;
  const auto& from = core_.setup.around->newcomers;
  const auto own = from.given(value(core_.change.clock()));
  if (own.bytes == 0) return;  // its program is done, and the next view begins without it
  if (own.bytes != given.bytes || own.own != given.own || !(own.digest == given.digest))
    return core_.as_node.tell<training_failed>(
        core_.as_node.self(),
        {"the state of this worker is not that of worker 0, before step " +
             std::to_string(value(core_.change.clock())) +
             ": it has trained something else, or state=[...] has another content on each worker",
         1});
  const auto index = static_cast<std::uint32_t>(core_.setup.run->shared.size());
  for (const auto w : step.newcomers) {
    if (has_seat(core_.view().lacking, core_.view().seat_of(w))) continue;
    for (const auto first : pieces_of(given.bytes))
      if (giver_of_piece(first, given, step.before.by_owner.size(), step.lost) == step.former_self)
        core_.members.send(w, {frames::shared_state{index, first}, from.piece(first), 1});
  }
}

void value_sender::take_own_values() {
  const auto& from = core_.setup.around;
  if (from == nullptr) return;
  auto& store = *core_.run.store();
  for (const auto p : store.parameters()) {
    if (!is_set(from->has_parameters, value(p))) continue;
    copy_first_values(*from, p, core_.setup.run->first_clock, store);
    for (const auto chunk : store.cut().by_parameter[p]) landed(chunk);
  }
}

void value_sender::landed(chunk_id chunk) {
  const auto& store = *core_.run.store();
  const auto parameter = store.cut().chunks[chunk].parameter;
  const auto version = core_.setup.run->first_clock;
  core_.as_node.tell<chunk_landed>(
      core_.run.graph().parameters().receiver_of(parameter),
      {chunk, version_id{version},
       store.mean(parameter, version) == parameter_store::mean_is::nothing});
}

void value_sender::give(const std::vector<history_piece>& pieces) {
  for (const auto& p : pieces) {
    if (p.here)
      core_.as_node.tell<history_inherited>(core_.run.graph().parameters().history_owner(p.chunk),
                                            {p.chunk, p.slot, p.first, p.values});
    for (const auto worker : p.away)
      core_.members.send(worker, {frames::install_history{p.chunk, p.slot, p.first}, p.values, 0});
  }
}

}  // namespace poseidon
