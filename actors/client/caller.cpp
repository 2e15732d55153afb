#include "actors/client/caller.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace poseidon {

namespace {

constexpr std::size_t most_reports = 64;

}  // namespace

caller::caller(actor_context context, caller_setup setup)
    : actor(context),
      setup_(std::move(setup)),
      fresh_(setup_.from->declared.size()),
      lent_(setup_.from->declared.size()),
      offers_(1, setup_.from->declared.size()) {}

void caller::started() {
  const handle<caller> self(this);
  setup_.from->caller.set({self, self, self, self, self, self});
}

/// The program holds a reference to this actor.
void caller::ended() {
  setup_.from->caller.set({});
}

void caller::on(const connect_caller& m) {
  neighbours_ = m;
  of_former_view_ = false;
  early_.clear();
  leavers_.clear();
  given_ = by_id<parameter_id, bool>(setup_.from->declared.size(), !m.comes);
  // The program asks who it trains with as soon as version 0 is here, and may lend gradients then: that comes after this message, and
  // perhaps before the one that begins training.
  if (!began_) begin_view();
  const auto workers = m.view.seats.size();
  if (workers == newest_.size()) return;
  newest_ = by_id<worker_id, frames::worker_report>(workers);
  offers_ = factor_offers(workers, setup_.from->declared.size());
  reports_.clear();
}

/// The program learns from its fresh_board that the first values are here.
/// Where a worker is lost while others have just come, the view that they came with begins once more, for these as the first time.
void caller::on(const begin_training&) {
  pace_.since_ns = now_ns();
  const bool again = std::exchange(began_, true);
  if (again || frozen_) return on(resume_training{});
  gather_state();
}

void caller::begin_view() {
  const auto& view = neighbours_->view;
  setup_.from->views.add(view);
  setup_.from->factors.forget_former();
  for (const auto p : setup_.from->lent.ids())
    if (setup_.from->declared[value(p)].given)
      setup_.from->lent[p]->sends(view.self == worker_id{0});
}

void caller::on(const gradients_lent& m) {
  for (const auto& [parameter, clock] : m.gradients) {
    lent_[parameter] = value(clock) + 1;
    if (!frozen_) send_lent(parameter, value(clock));
    note_push(value(clock));
    begins(value(clock));
  }
}

/// Where a newcomer's view begins once more, its program has the first version already, and the actors are given it again. The next one must not
/// come before.
void caller::send_lent(parameter_id p, std::uint64_t clock) {
  if (given_[p])
    tell(neighbours_->pushes[p], backward_done{replica_id{0}, {clock_id{clock}, 0, 0}});
}

/// The actors of this view have not got any of it.
void caller::send_lent_again() {
  const auto first = neighbours_->view.first_clock;
  for (const auto p : lent_.ids())
    if (lent_[p] == first + 1) send_lent(p, first);
}

/// A clock's gradients come in its backward pass, and what lies before them is its forward pass, which begins with waiting.
void caller::note_push(std::uint64_t clock) {
  constexpr std::string_view name = "program";
  if (setup_.trace == nullptr) return;
  const auto now = now_ns();
  if (pace_.pushes == 0) {
    pace_.first_ns = now;
    const auto waited = setup_.from->waited_ns.load();
    const auto fresh = std::min(now, pace_.since_ns + (waited - pace_.waited_ns));
    pace_.waited_ns = waited;
    if (fresh > pace_.since_ns)
      setup_.trace->record({name, span_phase::stall, pace_.since_ns, fresh, clock});
    setup_.trace->record({name, span_phase::forward, fresh, now, clock});
  }
  if (++pace_.pushes < setup_.from->declared.size()) return;
  setup_.trace->record({name, span_phase::backward, pace_.first_ns, now, clock});
  pace_.since_ns = now;
  pace_.pushes = 0;
}

void caller::on(const state_wanted& m) {
  state_.wanted = m.version;
  gather_state();
}

void caller::gather_state() {
  if (!began_ || !state_.wanted || (held_ && !pauses_at_)) return;
  if (pauses_at_ && *pauses_at_ <= value(*state_.wanted)) return;
  write_snapshot order;
  order.version = *std::exchange(state_.wanted, std::nullopt);
  order.for_program = true;
  order.copied = handle<caller>(this);
  state_.gathering = true;
  tell(neighbours_->checkpointer, order);
}

void caller::on(const snapshot_copied&) {
  state_.gathering = false;
  if (const auto hold = std::exchange(state_.hold_waits, std::nullopt)) on(*hold);
}

/// A mean of factors is made where the program wants it. One that another worker has given, which had it before a loss, lies in the store.
void caller::bring_to_its_place(parameter_id p, std::uint64_t version) {
  if (!neighbours_->lacks_values || version != neighbours_->view.first_clock) return;
  const auto place = setup_.from->lent[p]->mean();
  if (place.empty()) return;
  const auto values = std::as_const(*setup_.from->store).values(p, version);
  std::copy(values.begin(), values.end(), place.begin());
}

/// Where routes change, the version that is here comes again.
void caller::note_update(const layer_fresh& m) {
  auto& from = *setup_.from;
  if (value(m.version) <= fresh_[m.layer]) return;
  if (!m.nothing) {
    ++from.steps_made[value(m.layer)];
    bring_to_its_place(parameter_id{value(m.layer)}, value(m.version));
  } else if (from.optimizer != optimizer_rule::none) {
    // The shards have sent nothing, and the values are those of before: they have to lie where this version is looked for.
    const auto p = parameter_id{value(m.layer)};
    const auto before = std::as_const(*from.store).values(p, value(m.version) - 1);
    std::copy(before.begin(), before.end(), from.store->values(p, value(m.version)).begin());
  }
}

/// What comes when this worker has frozen, of an actor that keeps state, counts for nothing: the others may have been told that it is not
/// here. If the next view begins with it, it comes again; and that view may still be replaced.
void caller::on(const layer_fresh& m) {
  if (of_former_view_) return;
  if (frozen_) return early_.push_back(m);
  note_update(m);
  // A declared layer has one parameter, with its number.
  setup_.from->fresh.publish(parameter_id{value(m.layer)}, value(m.version), m.nothing);
  fresh_[m.layer] = value(m.version);
  const auto p = parameter_id{value(m.layer)};
  if (!given_[p]) {
    given_[p] = true;
    const auto first = neighbours_->view.first_clock;
    if (lent_[p] == first + 1) send_lent(p, first);
  }
  pause_if_drained();
}

void caller::on(const shared_landed& m) {
  setup_.from->shared_in_flight.arrived(m.bytes);
}

// -- changes of routes ----------------------------------------------------------------------------------

void caller::on(const loads_measured& m) {
  frames::factor_offer offer;
  for (const auto& load : m.loads) offer.rows.push_back(load.factor_rows);
  if (!leads()) return tell(neighbours_->to_leader, send_frame{offer, {}, 0});
  loads_ = m.loads;
  take(neighbours_->view.self, offer);
}

void caller::take(worker_id from, const frames::factor_offer& o) {
  if (!offers_.take(from, o.rows)) return;
  const auto& places = *setup_.from->places;
  factors_offered all{offers_.rows(), loads_, {}};
  for (const auto p : setup_.from->lent.ids()) all.order.push_back(p);
  std::stable_sort(all.order.begin(), all.order.end(), [&](parameter_id a, parameter_id b) {
    return places.of(layer_id{value(a)}) < places.of(layer_id{value(b)});
  });
  tell(neighbours_->node_offered, std::move(all));
}

/// A program that is ahead answers with a later clock, and all train up to the latest: so none has begun it. A view has one clock at least:
/// two that begin with the same one would be the same view once more, without those that are lost.
void caller::on(const hold_clocks& m) {
  if (state_.gathering) {
    state_.hold_waits = m;
    return;
  }
  held_ = true;
  const auto next = setup_.from->clocks.hold();
  const auto least = done_ ? next : neighbours_->view.first_clock + 1;
  tell(neighbours_->node_held, clocks_held{clock_id{std::max(next, least)}, m.epoch});
}

void caller::on(const pause_at& m) {
  pauses_at_ = value(m.clock);
  pauses_in_ = m.epoch;
  for_newcomers_ = m.for_newcomers;
  auto& from = *setup_.from;
  from.clocks.pause_at(value(m.clock), for_newcomers_ && !from.newcomers.has_given(value(m.clock)));
  gather_state();
  pause_if_drained();
}

/// Who needed it may have gone while the program made it.
void caller::on(const state_given& m) {
  if (!pauses_at_ || !for_newcomers_) setup_.from->newcomers.forget_given();
  begins(value(m.clock));
  pause_if_drained();
}

/// A program that is done gives nothing any more, and the run is about to end.
void caller::pause_if_drained() {
  if (!pauses_at_ || paused_) return;
  if (for_newcomers_ && !done_ && !setup_.from->newcomers.has_given(*pauses_at_)) return;
  if (std::any_of(fresh_.begin(), fresh_.end(), [&](auto v) { return v < *pauses_at_; })) return;
  paused_ = true;
  tell(neighbours_->node_paused, training_paused{version_id{*pauses_at_}, 0, pauses_in_});
}

/// The gate stays as it is: clocks that may begin, do.
void caller::on(const give_up_clocks&) {
  frozen_ = of_former_view_ = true;
  pauses_at_.reset();
  paused_ = held_ = false;
  state_.hold_waits.reset();
  tell(neighbours_->node_gave_up, clocks_given_up{});
}

/// The actors that could still bring a later version have ended.
void caller::on(const go_back& m) {
  for (auto& version : fresh_) version = std::min(version, value(m.version));
  setup_.from->fresh.go_back(value(m.version));
}

void caller::on(const resume_training&) {
  pauses_at_.reset();
  paused_ = held_ = frozen_ = false;
  begin_view();
  send_lent_again();
  for (const auto& fresh : std::exchange(early_, {})) on(fresh);
  setup_.from->newcomers.forget_given();
  setup_.from->clocks.open();
  gather_state();
  // Who has been told in the view before does not know it any more.
  if (done_) on(program_done{*done_});
}

// -- what a clock has come to ---------------------------------------------------------------------------

void caller::on(const clock_reported& m) {
  samples_ += m.samples;
  const auto overlap = setup_.overlap->read(now_ns());
  const frames::worker_report report{
      .clock = m.clock,
      .passes = 1,
      .sums = {m.loss},
      .images = samples_,
      .communication_ns = overlap.communication_ns,
      .exposed_ns = static_cast<std::uint64_t>(setup_.from->waited_ns.load())};
  if (leads())
    take(neighbours_->view.self, report);
  else
    tell(neighbours_->to_leader, send_frame{report, {}, 0});
}

void caller::take(worker_id from, const frames::worker_report& r) {
  if (!newest_.contains(from)) return;  // of a view before
  newest_[from] = r;
  const auto clock = value(r.clock);
  // A report is optional: clocks that not all workers report would stay for ever.
  if (reports_.size() == most_reports) reports_.erase(reports_.begin());
  auto& of_clock = reports_[clock];
  of_clock.loss += r.sums.front();
  const auto workers = neighbours_->view.seats.size();
  if (++of_clock.workers < workers) return;
  const auto loss = of_clock.loss / static_cast<double>(workers);
  reports_.erase(reports_.begin(), reports_.upper_bound(clock));
  if (setup_.display == nullptr) return;
  progress::iteration i;
  i.clock = clock;
  i.loss = loss;
  for (const auto& newest : newest_) {
    i.images += newest.images;
    i.communication_ns += newest.communication_ns;
    i.exposed_ns += newest.exposed_ns;
  }
  const auto carried = setup_.carried ? setup_.carried() : traffic{};
  setup_.display->trained(i, {});
  setup_.display->stepped({clock + 1, 0, i.images, carried.bytes_out, carried.bytes_in});
}

void caller::on(const control_passed& m) {
  if (const auto* r = std::get_if<frames::worker_report>(&m.header)) take(m.from, *r);
  if (const auto* o = std::get_if<frames::factor_offer>(&m.header)) take(m.from, *o);
  if (const auto* left = std::get_if<frames::worker_left>(&m.header)) {
    const auto& [epoch, first, seats, self] = neighbours_->view;
    if (left->left == seats.at(value(self))) return;
    if (!left->others_go_on)
      return setup_.from->fresh.left("worker " + std::to_string(value(left->left)),
                                     value(left->version));
    leavers_[left->left] = value(left->version);
    go_on_without_leavers();
  }
}

void caller::begins(std::uint64_t clock) {
  begun_ = std::max(begun_, clock + 1);
  go_on_without_leavers();
}

void caller::go_on_without_leavers() {
  std::erase_if(leavers_, [&](const auto& l) {
    const bool goes_on = begun_ > l.second;
    if (goes_on) tell(neighbours_->node_goes_on, goes_on_without{l.first});
    return goes_on;
  });
}

// -- the end --------------------------------------------------------------------------------------------

void caller::on(const program_done& m) {
  done_ = m;
  // All nodes rebuild their graphs: none could end now. Before a clock that no program trains they never do. That this one leaves the others have
  // to know before, because it gives newcomers nothing.
  const bool rebuilds = frozen_ || paused_;
  const bool waits = pauses_at_ && *pauses_at_ <= m.version && !m.others_go_on;
  if (!rebuilds && !waits)
    tell(neighbours_->node, training_done{version_id{m.version}, samples_, {}, m.others_go_on});
  if (pauses_at_) pause_if_drained();
}

void caller::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
