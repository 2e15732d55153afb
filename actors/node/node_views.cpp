// How a node comes from one view to the next: which of its parts hears what, in which order.
#include "actors/node/node.hpp"
#include "actors/node/state_left.hpp"
#include "models/files/paused_name.hpp"
#include "models/words.hpp"

#include <utility>

namespace poseidon {

namespace {

/// Two nodes that fail by themselves within so many iterations have one cause.
constexpr std::uint64_t at_the_same_time = 3;

}  // namespace

void node::on(const link_flow& m) {
  if (const auto rate = rates_.on(m)) leader_.rate(*rate);
}

void node::on(const routes_proposed& m) {
  if (core_.phase == run_phase::training && !core_.change.under_way()) leader_.here()->on(m);
}

void node::on(const factors_offered& m) {
  if (auto* const leads = leader_.here()) leads->on(m);
}

void node::on(const clocks_held& m) {
  if (m.epoch == view().epoch) leader_.holds(m.clock);
}

void node::on(const training_paused& m) {
  if (const auto clock = changing_.on(m)) leader_.drained(*clock);
}

void node::on(const clocks_given_up&) {
  if (changing_.gave_up()) has_frozen();
}

/// One view after the other: what follows a view is proposed when that view has been decided.
void node::propose() {
  if (drained_ && drained_->epoch <= agreement_.epoch()) drained_.reset();  // of a view before
  if (!drained_ || !agreement_.is_free() || leader_.here() == nullptr) return;
  guarded([this] {
    const auto m = *std::exchange(drained_, std::nullopt);
    agreement_.propose(leader_.here()->next_view(m));
  });
  take_decision();
}

void node::take_decision() {
  if (core_.has_ended()) return;
  guarded([this] {
    const auto next = agreement_.take_decision();
    if (!next) return;
    if (auto* const leads = leader_.here()) leads->tell_newcomers(*next);
    follow(*next);
  });
}

/// The members have agreed on the next view, which may take the place of one that has not begun. A node that trains freezes first.
void node::follow(const frames::next_view& next) {
  const auto seat = view().seat;
  // It has come with a view that is replaced, and has nothing to hand over; or it has missed a view, which said that it is lost.
  const bool gives_nothing = begins_again(view(), next) && !view().had(seat);
  const bool missed_one =
      next.epoch > agreement_.epoch() + 1 && core_.change.at() != view_change::step::paused;
  const bool goes = !is_among(next.members, seat) && !end_.is_leaving();
  if (has_seat(next.lost, seat) || (goes && (gives_nothing || missed_one)))
    return left_out("the other nodes go on without this one from iteration " +
                    std::to_string(value(next.first_clock)) + " on: they have not heard it (" +
                    next.why + "). It writes nothing");
  const auto& change = core_.change;
  if (core_.phase == run_phase::training && change.at() != view_change::step::paused &&
      change.at() != view_change::step::frozen) {
    if (!later_ || later_->epoch < next.epoch) later_ = next;
    changing_.freeze();
    return;
  }
  if (is_of_newcomers_alone(core_, next))
    return fail(without_the_first_values(value(next.first_clock)) + ": " + next.why, 3);
  if (!changing_.can_follow(next))
    return fail("this node cannot follow the others to view " + std::to_string(next.epoch) +
                    ", which begins with iteration " + std::to_string(value(next.first_clock)) +
                    ": it has not what that view begins with",
                3);
  const auto gone = layers_without_state(core_, next);
  if (!gone.empty() && !core_.setup.run->zeroes_lost_state)
    return fail("solver state is gone with the nodes that were lost, that of " + comma_list(gone) +
                    ": --survive " + std::to_string(core_.setup.run->survive) +
                    " keeps no further copy, and with --lost-state zero the run would go on "
                    "without. " +
                    next.why,
                3);
  // Its plan has been of another one, or of none.
  const bool unplanned = change.at() == view_change::step::frozen || next.lost != view().lost ||
                         (leader_.here() != nullptr && !agreement_.is_as_wanted(next));
  desk_.next_view();
  const bool leads = next.members.front().seat == seat;
  if (leads && leader_.here() == nullptr)
    leader_.lead().take_over(next);
  else if (leads && unplanned)
    leader_.here()->take_over(next);
  if (!leads && leader_.here() != nullptr) leader_.end();
  if (!leads || unplanned) drained_.reset();
  leader_changed_ = leader_changed_ || unplanned;
  leave_to_themselves(next);
  // A witness asks nobody, and who has decided the view may have ended before it could tell all.
  for (const auto& w : next.witnesses) core_.members.send(w.seat, send_frame{next, {}, 0});
  if (!gone.empty()) changing_.begin_with_zeros(gone, next.first_clock);
  if (changing_.leave(next)) rebuild();
  for (const auto& early : desk_.take_early()) on(early);
  propose();
}

/// A node that has been cut off, and may still be there, hears the view that the others go on with.
void node::leave_to_themselves(const frames::next_view& next) {
  for (const auto seat : next.lost) {
    const auto& links = core_.members.links();
    const auto link = links.find(seat);
    if (link == links.end()) continue;
    core_.members.send(seat, send_frame{next, {}, 0});
    tell<close_link>(link->second, {"the other nodes go on without it: " + next.why,
                                    frames::goodbye::cause::left_out});
    core_.members.lost(seat, next.why);
  }
}

// -- a member is lost -----------------------------------------------------------------------------------

/// In a view that has begun here, or begins.
bool node::takes_part() const {
  const auto phase = core_.phase;
  const bool forms = phase == run_phase::building || phase == run_phase::waiting;
  return core_.trains() || phase == run_phase::parting || (forms && !view().before.empty());
}

/// The connection has ended, or nothing came any more. Who says why it goes has a reason that may be the others', too.
bool node::goes_on_without(const link_lost& m) {
  const bool alone = !m.on_purpose || m.of == frames::goodbye::cause::writer ||
                     leavers_.needs(m.peer) || search_.was_found(m.peer, agreement_.epoch());
  if (!takes_part() || !alone || core_.setup.run->survive == 0 || core_.has_ended()) return false;
  return view().has(m.peer) || view().had(m.peer) || core_.change.brings(m.peer);
}

/// However it goes: what a witness says as it goes is no reason for the others, and who leaves by a view is in the newest one no more.
bool node::is_voting_witness(seat_id seat) const {
  return takes_part() && core_.setup.run->survive > 0 && !core_.has_ended() &&
         is_among(core_.newest_witnesses(), seat);
}

void node::member_lost(const link_lost& m) {
  core_.setup.display->note(m.why);
  core_.members.lost(m.peer, m.why);
  core_.setup.records.view->lost(m.peer, m.why);
  const bool has_failed = failed_.contains(m.peer) || (m.said_goodbye && is_voting_witness(m.peer));
  using fate = agreement::fate;
  // Who turns a new link away may have gone on when it was already under way.
  const bool gone_on = m.slept || search_.was_found(m.peer, agreement_.epoch());
  agreement_.lost(m.peer, m.why,
                  has_failed ? fate::dead
                  : gone_on  ? fate::may_have_gone_on
                             : fate::unknown);
  if (!has_failed) search_.lost(m.peer, m.fresh, agreement_.epoch());
  agree();
}

/// Where this node was to leave, the others have lost it, and wait on.
void node::give_up_waiting(const std::string& paused, const char* why, bool leaves) {
  const auto suffix = std::string(paused_name) + std::to_string(value(view().seat));
  using cause = frames::goodbye::cause;
  if (end_.fail(paused + ". " + why, 3, suffix, leaves ? cause::writer : cause::run)) close();
}

/// It has a link again, before the members have agreed on a view without it.
void node::member_found(seat_id seat) {
  if (core_.has_ended() || !search_.misses(seat)) return;
  core_.setup.display->note(view().name_of(seat) + " is heard again");
  if (is_voting_witness(seat))
    core_.members.send(seat, send_frame{agreement_.newest_view(), {}, 0});
  search_.found(seat);
  agreement_.found(seat);
  agree();
}

void node::on(const sought& m) {
  if (core_.has_ended() || core_.phase == run_phase::parting)
    return;  // the others do go on without it
  guarded([&] {
    switch (search_.on(m, agreement_.epoch())) {
      case search::finding::nothing:
        if (m.is == sought::answer::none) return;
        agreement_.answered(m.seat);
        return agree();
      case search::finding::dead:
        agreement_.dead(m.seat);
        return agree();
      case search::finding::linked:
        return member_found(m.seat);
      case search::finding::this_node_is_out:
        return left_out("the other nodes have gone on without this one");
    }
  });
}

/// Those that are left cannot begin the view that they came with.
std::string node::without_the_first_values(std::uint64_t clock) const {
  const auto version = "iteration " + std::to_string(clock);
  if (view().is_first())
    return "the first node is lost before all others had the values that " + version +
           " begins with. Nothing has been trained: start the run again";
  return "all nodes that had trained before " + version +
         " are lost or have left, and those that joined with it cannot go on alone, because they "
         "may lack values of it";
}

/// What this node has trained since is worth nothing to them: it ends, and may come back as a newcomer.
void node::left_out(const std::string& why) {
  if (end_.left_out(why)) close();
}

void node::link_is_silent(seat_id peer) {
  if (!core_.has_ended() && core_.change.silent(peer)) has_frozen();
}

void node::has_frozen() {
  if (const auto next = std::exchange(later_, std::nullopt)) follow(*next);
  agree();
}

/// Something has failed that the others need not share: a disk, a device. They go on.
void node::fail_alone(const std::string& text, int exit_code) {
  if (core_.trains() && core_.setup.run->survive > 0)
    core_.members.broadcast(frames::suspect{view().seat, in_words(text)});
  fail(text, exit_code);
}

/// Its own words prove that it is gone. But a broken record would end one node after the other, as each takes over the same sample.
void node::member_failed(seat_id seat, const std::string& why) {
  const link_lost lost{seat, view().name_of(seat) + " has failed: " + why, false};
  if (!goes_on_without(lost) || !failed_.insert(seat).second) return;
  const auto clock = value(core_.run.trained_version().value_or(version_id{}));
  const auto before = std::exchange(last_failure_, std::pair(clock, lost.why));
  if (before && clock < before->first + at_the_same_time)
    return fail("two nodes have failed within " + std::to_string(at_the_same_time) +
                    " iterations, and the next one would probably fail as they did. " +
                    before->second + "; " + lost.why,
                3);
  const auto& links = core_.members.links();
  if (const auto link = links.find(seat); link != links.end())  // it may say so, and stay
    tell<close_link>(link->second, {lost.why});
  member_lost(lost);
}

/// Does what the members' agreement waits for here.
void node::agree() {
  if (core_.has_ended()) return;
  if (agreement_.wants_freeze()) changing_.freeze();
  guarded([this] {
    agreement_.look();
    if (const auto news = agreement_.pause_news())
      core_.setup.display->warning(*news +
                                   ". It goes on when enough of them are heard again, or where "
                                   "poseidon-node go-on says that they have ended");
  });
  take_decision();
  if (core_.has_ended()) return;
  const auto paused = agreement_.why_paused();
  core_.setup.records.view->paused(paused);
  if (agreement_.is_hopeless()) return fail(without_the_first_values(value(view().first_clock)), 3);
  if (agrees_ || !agreement_.is_under_way()) return;
  if (end_.is_wanted() && agreement_.is_stuck())
    return give_up_waiting(paused, "It was told to end", end_.is_leaving());
  agrees_ = true;
  tell_self(look_at_agreement{}, agreement::tick_length);
}

void node::on(const look_at_agreement&) {
  agrees_ = false;
  if (core_.has_ended()) return;
  guarded([this] {
    agreement_.tick();
    search_.tick(agreement_.epoch());
  });
  agree();
}

void node::rebuild() {
  guarded([this] {
    const auto leader = view().leader();
    changing_.rebuild();
    leader_changed_ = leader_changed_ || leader != view().leader();
    route_file_.write();
    if (core_.phase == run_phase::parting) (void)leader_.ready();
    report_missing();
    if (core_.phase == run_phase::parting && core_.members.links().empty())
      return fail("all other nodes are lost, and this one was leaving", 3);
    find_witnesses();
    if (assembly_.bind_if_complete()) stands();
  });
}

/// A witness that has come while this node did may know nothing of it, or may have lost its link since it was ready.
void node::find_witnesses() {
  if (core_.phase == run_phase::parting) return;
  std::vector<link_lost> unreached;
  core_.members.dial_witnesses(core_.here(), unreached);
  for (const auto& lost : unreached) member_lost(lost);
}

/// The leader takes newcomers that died before this view could begin out of the next one.
void node::report_missing() {
  for (const auto& [seat, why] : core_.members.missing()) {
    if (const auto early = lost_early_.extract(seat)) newcomer_lost(early.mapped());
    leader_.missing(seat, why);
  }
  lost_early_.clear();
}

/// The leader says that all are ready. Where one of those that were to join is gone meanwhile, a member is lost.
void node::begin_as_told(void (node::*begins)()) {
  if (agreement_.has_promised()) return;
  const auto missing = core_.members.missing();
  if (!missing.empty() && core_.setup.run->survive == 0) return fail(missing.begin()->second, 3);
  (this->*begins)();
  for (const auto& [seat, why] : missing) member_lost({seat, why, false});
}

void node::on(const history_released& m) {
  changing_.on(m);
}

/// Nobody tells the node of each version; and who waits for this has time.
void node::on(const look_at_leavers&) {
  looks_at_leavers_ = false;
  if (core_.has_ended()) return;
  leavers_.look();
  watch_leavers();
}

void node::watch_leavers() {
  if (!leavers_.wait() || !view().leads() || std::exchange(looks_at_leavers_, true)) return;
  tell_self(look_at_leavers{}, std::chrono::milliseconds{20});
}

void node::resume() {
  changing_.resume();
  leavers_.view_begins();
  watch_leavers();
  if (changing_.members_changed()) rates_.begin();
  if (leader_.here() != nullptr)
    leader_.here()->changed(changing_.stopped(), changing_.members_changed());
  if (std::exchange(leader_changed_, false))
    say_what_is_wanted("it says so again, because another node led meanwhile");
  for (auto& early : core_.members.take_early()) on(link_accepted{std::move(early)});
  watch_progress();
}

}  // namespace poseidon
