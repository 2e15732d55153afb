// actors/membership/view_change.hpp
//
// Where one node stands, and its part in deciding which view is the next one. A value without actors, a clock, a mailbox or links: its
// owner tells it what happens, with what it knows then (view_facts), and does what take_action() says, one after the other. Every member
// has one; a witness is one that never trains.
//
//   starting -gathers-> gathering -builds, enters-> building -stands-> waiting -begins-> training             its first view
//   training -drains-> draining -has_drained-> drained -follows-> releasing -released, by all-> ending -left, by all-> rebuilding
//   training, draining -freeze-> freezing -left and silent, by all-> frozen -follows-> releasing              a member is lost
//   rebuilding -stands-> resuming -begins-> training
//   rebuilding -builds-> building    where the view begins again with which this node came
//   rebuilding -parts-> parting      the next view is without this node
//   Another view takes the place of one that has not begun:
//   releasing, ending -follows-> the same
//   rebuilding, resuming, parting -follows, ends-> ending; building, waiting -follows, ends-> discarding -left, by all-> building
//   any -fails-> failing, any -is_over-> ended
//
// All drain before one builds, so nothing of the old view is under way then, and every node has all parameters of the clock's version.
// Where a member is lost nobody can drain: a node that has frozen sends no gradients any more, and keeps its solver state until the
// members that are left have agreed on the version that all go back to.
//
// The members of the newest view decide the next one by ballots (ballot_box.hpp), those included that came with it. The leader proposes
// what it plans when all have drained. Where a member is lost, whoever notices it proposes, the oldest first, a view of those that hear each
// other (next_members.hpp). What members answer has to hold, so a node that trains freezes first. Where too few hear each other, this side
// is paused: it stands as it is, and goes on where members are found again, are proved to have ended, or somebody says that they have.
#pragma once
#include "actors/membership/ballot_box.hpp"
#include "actors/membership/view_action.hpp"
#include "messages/node_stage.hpp"

#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <utility>

namespace poseidon {

/// What the model of tests/actors/membership breaks on purpose.
struct view_change_rules {
  quorum_rule* decides = &quorum;
  std::function<next_membership(const membership_facts&)> next = nullptr;  ///< null: next_members
  bool answers_before_it_is_still = false;
  bool follows_what_it_has_followed = false;
};

class view_change {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using facts = view_facts;
  using enum node_stage;
  /// What computes, by a number that its owner gives it.
  using task = std::uint64_t;
  /// The time between two ticks.
  static constexpr std::chrono::milliseconds tick_length{20};

  view_change() = default;
  explicit view_change(view_change_rules rules) : rules_(std::move(rules)) {}

  /// The next thing to do; empty: nothing.
  [[nodiscard]] std::optional<view_action::action> take_action();

  // -- on the way ----------------------------------------------------------------------------------------
  /// It waits for others, or for its turn to join them.
  void gathers() { at_ = gathering; }
  /// Its graph is being built; `begins`: what trains is still to begin, or begins anew.
  void builds(bool begins) { at_ = begins ? building : rebuilding; }
  /// Its graph and its links stand.
  void stands() { at_ = at_ == building ? waiting : resuming; }
  /// The next view is without it.
  void parts() { at_ = parting; }
  void fails() { at_ = failing; }
  void is_over() { at_ = ended; }
  /// A newcomer has entered this view, which may still be replaced.
  void enters(clock_id clock, std::uint64_t test_phases, frames::next_view next);
  /// All are told to train. Returns  how long this node has stood.
  std::chrono::milliseconds begins(time_point now);
  /// Another view holds from `clock` on. False: it does not train yet, or another change is under way; then the clock waits for
  /// take_early_drain().
  [[nodiscard]] bool drains(clock_id clock);
  [[nodiscard]] std::optional<clock_id> take_early_drain() { return std::exchange(early_, {}); }
  /// What trains has paused before the clock. False: it was not asked to.
  [[nodiscard]] bool has_drained(std::uint64_t test_phases, time_point now);
  /// These tasks are to end, or to give their work up, and these links to fall silent.
  void freeze(std::set<task> tasks, std::set<seat_id> links, time_point now, const facts& f);
  // One of those. True: that was the last, so this node has frozen.
  [[nodiscard]] bool silent(seat_id link, const facts& f);
  [[nodiscard]] bool left(task of, const facts& f);
  /// As a view_action::follow has asked for.
  void follows(frames::next_view next, const facts& f);
  /// An actor has given its solver state away. False: it was not asked to.
  [[nodiscard]] bool released();
  /// These tasks of the old graph are to end.
  void ends(std::set<task> tasks);
  /// The next view has been entered, and its graph is being built.
  void enters_next() { has_entered_ = true; }

  // -- who decides on the next view ----------------------------------------------------------------------
  /// All members of the newest view wait for this one, which this node has planned as their leader.
  void plans(frames::next_view next, const facts& f);
  /// A frame of a ballot.
  void hears(seat_id from, const frame_header& frame, const facts& f);
  /// Somebody says that the members have decided this view.
  void is_told(const frames::next_view& next, const facts& f);
  /// What is known of a lost member: nothing; its process is proved to have ended; or it may have gone on without this node, which has
  /// slept meanwhile.
  enum class fate { unknown, dead, may_have_gone_on };
  /// A member of the newest view is gone, or one that leaves with it.
  void loses(seat_id seat, const std::string& why, fate is, const facts& f);
  /// It has been asked, and it or its machine has answered: it has not gone on.
  void answered(seat_id seat);
  /// A lost member's process is proved to have ended.
  void dead(seat_id seat, const facts& f);
  /// A lost member is linked again.
  void found(seat_id seat, const facts& f);
  /// Somebody who knows says that all that are not heard have ended. False: nobody is missed.
  [[nodiscard]] bool go_on_without_them(const facts& f);
  /// After each event: freezes where that is asked for, says what it could not say before, and proposes when it is its turn.
  void look(const facts& f);
  /// A tick_length has passed. look() is to follow.
  void tick(const facts& f);
  // What ticks lead to: this node's turn has come; who is heard and does not answer is waited for no longer.
  void proposes(const facts& f);
  void waits_no_longer(const facts& f);
  /// Somebody is heard no more, or is proved to be dead: the promises may suffice now.
  void looks_at_promises(const facts& f);

  // -- questions -----------------------------------------------------------------------------------------
  [[nodiscard]] node_stage at() const { return at_; }
  [[nodiscard]] bool is_in(stage_set some) const { return contains(some, at_); }
  [[nodiscard]] bool is_changing() const { return awaits_next() || knows_next(); }
  /// What this node says of itself stays true until there is another view.
  [[nodiscard]] bool is_still() const {
    return at_ != training && at_ != draining && at_ != freezing;
  }
  /// Or is about to.
  [[nodiscard]] bool has_frozen() const { return at_ == freezing || at_ == frozen; }
  /// There is to be another view, and which one is not known here.
  [[nodiscard]] bool awaits_next() const {
    return at_ == draining || at_ == drained || has_frozen();
  }
  /// The next view is known here, and has not begun.
  [[nodiscard]] bool knows_next() const { return !next_.members.empty(); }
  /// The graph of the view before, or of one that is replaced, has not ended yet.
  [[nodiscard]] bool ends_a_graph() const { return at_ == ending || at_ == discarding; }
  /// follows() leads it away from the view that it has trained in.
  [[nodiscard]] bool is_to_leave_its_view() const { return at_ == drained || at_ == frozen; }
  /// ... to a version before the one that it stands at, or it cannot know.
  [[nodiscard]] bool goes_back_for(const frames::next_view& next) const {
    return at_ == frozen || clock_ != next.first_clock;
  }
  /// It has entered the next view, or one that that one replaces.
  [[nodiscard]] bool has_entered() const { return has_entered_; }
  /// The first clock of the next view.
  [[nodiscard]] clock_id clock() const { return clock_; }
  [[nodiscard]] std::uint64_t test_phases() const { return test_phases_; }
  /// Where knows_next().
  [[nodiscard]] const frames::next_view& next() const { return next_; }
  /// Who leads from now on, where that is known before the next view has begun here.
  [[nodiscard]] std::optional<seat_id> leader() const {
    return next_.members.empty() ? std::nullopt : std::optional(next_.members.front().seat);
  }
  /// Whether the next view has this member, where it is known.
  [[nodiscard]] bool brings(seat_id seat) const { return is_among(next_.members, seat); }
  /// The next view is known, and has it no more: it is lost.
  [[nodiscard]] bool leaves_behind(seat_id seat) const {
    return knows_next() && has_seat(next_.lost, seat);
  }
  /// The newest view that this node knows, begun or not.
  [[nodiscard]] std::uint64_t epoch(const agreed_view& view) const {
    return knows_next() ? next_.epoch : view.epoch;
  }
  /// It, for who has not heard of it.
  [[nodiscard]] frames::next_view newest_view(const facts& f) const;
  /// The newest view says so.
  [[nodiscard]] bool knows_as_lost(seat_id seat, const agreed_view& view) const {
    return knows_next() ? leaves_behind(seat) : has_seat(view.lost, seat);
  }
  /// It is a newcomer of a view that has not begun: another view without it can replace that one.
  [[nodiscard]] bool is_to_come(seat_id seat, const agreed_view& view) const;
  /// It has planned nothing yet that follows the newest view.
  [[nodiscard]] bool may_plan(const agreed_view& view) const {
    return epoch(view) > 0 && !(is_current(view) && page_->planned);
  }
  /// It has a part in a view that is being decided: the newest one must not begin here.
  [[nodiscard]] bool has_promised(const agreed_view& view) const {
    return is_current(view) && page_->box.frozen();
  }
  /// It has lost members of a view before, and has not looked since it knows the newest one, which may have them still.
  [[nodiscard]] bool is_to_look(const agreed_view& view) const {
    return !lost_.empty() && !is_current(view);
  }
  /// Whether tick() is to be called.
  [[nodiscard]] bool is_under_way(const agreed_view& view) const {
    return is_current(view) && (page_->disturbed || has_frozen()) && !page_->box.decided();
  }
  /// Why nothing is decided; empty: this side is not paused.
  [[nodiscard]] std::string why_paused(const facts& f) const;
  /// Its ballots on what follows the newest view, for tests; null: it has none yet.
  [[nodiscard]] const ballot_box* ballots() const { return page_ ? &page_->box : nullptr; }
  [[nodiscard]] const seat_list& known_dead() const { return dead_; }

 private:
  /// What is known of the view that follows the newest one. It is over as soon as there is a newer one.
  struct page {
    ballot_box box;
    std::optional<frames::next_view> planned{};
    bool disturbed = false;              // a member has been lost, so letters may be, too
    bool nobody_has_all_values = false;  // of those that answered, and the others have ended
    int ticks = 0;                       // since the first loss was noticed
    int turn = 0;                        // this node proposes when so many have passed
    int straggling = 0;  // since there were promises enough, but for members that are heard
    int word_until = 0;  // in ticks
    std::set<seat_id> to_be_asked{};                          // they may have gone on
    seat_list missed{};                                       // as the user has been told
    std::vector<std::pair<seat_id, frame_header>> waiting{};  // until this node is still
  };
  [[nodiscard]] bool is_current(const agreed_view& view) const {
    return page_ && page_->box.epoch() == epoch(view);
  }
  page& turn_page(const facts& f);
  void does(view_action::action a) { to_do_.push_back(std::move(a)); }
  void send(const ballot_box::letters& letters);
  void freeze_if_wanted(const facts& f);
  void has_frozen_now(const facts& f);
  void graph_has_ended();
  void answer_those_that_wait(const facts& f);
  void propose_in_turn(const facts& f);
  void take_decision(const facts& f);
  void tell_those_that_leave(const frames::next_view& next, const facts& f);
  void end(view_action::end_run::cause of, frames::next_view next = {},
           std::vector<std::string> layers = {});
  [[nodiscard]] node_stand stand(const facts& f) const;
  [[nodiscard]] seat_list heard(const facts& f) const;
  [[nodiscard]] ballot_box::knowledge knowledge(const facts& f);
  [[nodiscard]] membership_facts facts_of(testimonies said, const facts& f) const;
  [[nodiscard]] frames::next_view view_of(const seat_list& stay, version_id first,
                                          const facts& f) const;
  [[nodiscard]] std::optional<frames::next_view> next_value(const testimonies& said,
                                                            const facts& f);
  [[nodiscard]] bool is_as_planned(const frames::next_view& next, const facts& f) const;
  [[nodiscard]] bool has_version(clock_id clock, const facts& f) const;
  [[nodiscard]] bool can_follow(const frames::next_view& next, const facts& f) const;
  [[nodiscard]] bool is_hopeless(const facts& f) const;
  [[nodiscard]] bool is_stuck(const facts& f) const;

  view_change_rules rules_;
  node_stage at_ = starting;
  clock_id clock_{};
  frames::next_view next_;
  std::optional<clock_id> early_;
  std::uint64_t test_phases_ = 0;
  time_point stands_since_;
  std::size_t states_missing_ = 0;
  std::set<task> working_;
  std::set<seat_id> speaking_;  // links that are not silent yet
  bool has_entered_ = false;
  std::optional<frames::next_view> later_;  // the members have decided it while this node freezes
  std::uint64_t counted_ = 0;               // the newest view that it has counted the votes for
  std::map<seat_id, std::string> lost_;     // members of the newest view, and why
  seat_list dead_;
  std::optional<page> page_;
  std::deque<view_action::action> to_do_;
};

}  // namespace poseidon
