// What a node does when another one is lost, heard again, or has failed by itself: it tells the agreement, and freezes.
#include "actors/node/node.hpp"
#include "models/files/paused_name.hpp"

#include <utility>

namespace poseidon {

namespace {

/// Two nodes that fail by themselves within so many iterations have one cause.
constexpr std::uint64_t at_the_same_time = 3;

}  // namespace

void node::on(const link_lost& m) {
  lose(m);
  link_is_silent(m.peer);
  // It has handed over what it had, and nobody is left to say goodbye.
  if (core_.change.at() == node_stage::parting && core_.done && core_.members.links().empty())
    close();
}

void node::lose(const link_lost& m) {
  if (core_.change.at() == node_stage::ended) return;
  bool waits = false;
  guarded([&] { waits = joining_.lost(m); });
  if (waits) desk_.forget(m.peer);
  if (waits || core_.change.at() == node_stage::ended) return;
  if (gone_.contains(m.peer)) return core_.members.lost(m.peer, m.why);
  if (is_released(m)) {
    end_.released();
    return close();
  }
  // Who fails by itself before the run begins has something that its user should look at first.
  const bool ends_all = view().is_first() && m.reason;
  if (core_.comes(m.peer) && !ends_all && core_.change.at() != node_stage::failing) {
    core_.setup.display->detail("link lost: " + m.why);
    core_.members.lost(m.peer, m.why);
    newcomer_lost(m);
    return leader_.missing(m.peer, m.reason.value_or(m.why));
  }
  if (takes_part() && core_.change.knows_as_lost(m.peer, view()))
    return core_.members.lost(m.peer, m.why);
  if (m.of == frames::goodbye::cause::left_out && takes_part() && core_.setup.run->survive > 0)
    return left_out(m.why);
  if (may_go_on_without(m)) return member_lost(m);
  if (is_voting_witness(m.peer)) return member_lost(m);
  if (auto* const leads = leader_.here(); leads != nullptr && !view().has(m.peer))
    if (leads->gone(m.peer, m.reason.value_or(m.why))) return core_.members.lost(m.peer, m.why);
  const bool is_none_yet = !view().members.empty() && !view().has(m.peer) && !view().had(m.peer);
  if (is_none_yet && lost_early_.size() < most_lost_early) lost_early_[m.peer] = m;
  if (end_.lost(m)) close();
}

/// The leader leaves it out. Where the leader is lost, too, the others have to know whether this one may still agree on another view.
void node::newcomer_lost(const link_lost& m) {
  if (core_.setup.run->survive == 0 || core_.change.at() == node_stage::parting) return;
  m.said_goodbye ? core_.change.dead(m.peer, facts())
                 : search_.lost(m.peer, m.fresh, core_.newest_epoch());
}

/// In a view that has begun here, or begins.
bool node::takes_part() const {
  return core_.change.is_in(stages::running | during(node_stage::parting)) ||
         (core_.change.is_in(stages::coming) && !view().before.empty());
}

/// The connection has ended, or nothing came any more. Who says why it goes has a reason that may be the others', too.
bool node::may_go_on_without(const link_lost& m) {
  using cause = frames::goodbye::cause;
  const bool alone = !m.on_purpose || m.of == cause::writer || m.of == cause::released ||
                     leavers_.needs(m.peer) || search_.was_found(m.peer, core_.newest_epoch());
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
  const bool has_failed = gone_.contains(m.peer) || m.of == frames::goodbye::cause::released ||
                          (m.said_goodbye && is_voting_witness(m.peer));
  using fate = view_change::fate;
  // Who turns a new link away may have gone on when it was already under way.
  const bool gone_on = m.slept || search_.was_found(m.peer, core_.newest_epoch());
  core_.change.loses(m.peer, m.why,
                     has_failed ? fate::dead
                     : gone_on  ? fate::may_have_gone_on
                                : fate::unknown,
                     facts());
  if (!has_failed) search_.lost(m.peer, m.fresh, core_.newest_epoch());
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
    core_.members.send(seat, send_frame{core_.change.newest_view(facts()), {}, 0});
  search_.found(seat);
  core_.change.found(seat, facts());
  agree();
}

void node::on(const sought& m) {
  if (core_.has_ended() || core_.change.at() == node_stage::parting)
    return;  // the others do go on without it
  guarded([&] {
    switch (search_.on(m, core_.newest_epoch())) {
      case search::finding::nothing:
        if (m.is == sought::answer::none) return;
        core_.change.answered(m.seat);
        return agree();
      case search::finding::dead:
        core_.change.dead(m.seat, facts());
        return agree();
      case search::finding::linked:
        return member_found(m.seat);
      case search::finding::this_node_is_out:
        return left_out("the other nodes have gone on without this one");
    }
  });
}

/// What this node has trained since is worth nothing to them: it ends, and may come back as a newcomer.
void node::left_out(const std::string& why) {
  if (leaves_) end_.released();
  if (leaves_ || end_.left_out(why)) close();
}

void node::link_is_silent(seat_id peer) {
  if (!core_.has_ended() && core_.change.silent(peer, facts())) agree();
}

/// Something has failed that the others need not share: a disk, a device. They go on.
void node::fail_alone(const std::string& text, int exit_code) {
  if (core_.trains() && core_.setup.run->survive > 0)
    core_.members.broadcast(frames::suspect{view().seat, in_words(text)});
  fail(text, exit_code);
}

/// The others may have known it before, and gone on without it already.
bool node::is_news(const link_lost& m) {
  return !gone_.contains(m.peer) && !core_.change.knows_as_lost(m.peer, view()) &&
         may_go_on_without(m);
}

/// Its own words prove that it is gone. But a broken record would end one node after the other, as each takes over the same sample.
void node::member_failed(seat_id seat, const std::string& why) {
  const link_lost lost{seat, view().name_of(seat) + " has failed: " + why, false};
  if (!is_news(lost)) return;
  const auto clock = value(core_.run.trained_version().value_or(version_id{}));
  // What a newcomer fails by, those that have trained without it have not met. And who has come later may not know that it was one.
  const auto has_just_come = [&](seat_id s) {
    const auto came = came_.find(s);
    return came != came_.end() && clock < came->second + at_the_same_time;
  };
  const auto before = has_just_come(seat) || has_just_come(view().seat)
                          ? std::nullopt
                          : std::exchange(last_failure_, std::pair(clock, lost.why));
  if (before && clock < before->first + at_the_same_time)
    return fail("two nodes have failed within " + std::to_string(at_the_same_time) +
                    " iterations, and the next one would probably fail as they did. " +
                    before->second + "; " + lost.why,
                3);
  go_on_without(lost, frames::goodbye::cause::run);
}

void node::note_newcomers() {
  if (view().is_first()) return;
  for (const auto& m : view().members)
    if (!view().had(m.seat)) came_.emplace(m.seat, value(view().first_clock));
}

/// It may have said that it ends, and stay.
void node::go_on_without(const link_lost& m, frames::goodbye::cause of) {
  gone_.insert(m.peer);
  core_.close_link_to(m.peer, {m.why, of});
  member_lost(m);
}

/// Its program has said so itself, and has trained all that this one has had of it.
void node::on(const goes_on_without& m) {
  const link_lost left{m.left, view().name_of(m.left) + " has left", false};
  if (is_news(left)) go_on_without(left, frames::goodbye::cause::released);
}

/// Another one has trained on: nobody needs this one any more.
bool node::is_released(const link_lost& m) const {
  return leaves_ && m.of == frames::goodbye::cause::released && view().has(m.peer);
}

/// Something has happened that the members' agreement may wait for here.
void node::agree() {
  if (core_.has_ended()) return;
  do_actions();
  guarded([this] { core_.change.look(facts()); });
  do_actions();
  if (core_.has_ended() || agrees_ || !core_.change.is_under_way(view())) return;
  agrees_ = true;
  tell_self(look_at_agreement{}, view_change::tick_length);
}

void node::on(const look_at_agreement&) {
  agrees_ = false;
  if (core_.has_ended()) return;
  guarded([this] {
    core_.change.tick(facts());
    search_.tick(core_.newest_epoch());
  });
  agree();
}

}  // namespace poseidon
