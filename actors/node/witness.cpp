#include "actors/node/witness.hpp"

#include "messages/overloaded.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <utility>
#include <variant>

namespace poseidon {

namespace {

constexpr std::chrono::milliseconds before_it_dials_again{250};
/// So often it looks again for the leader, a minute long; and so often a member that it cannot reach may be one that has just left.
constexpr int most_dials = 240, most_missed = 20;

std::string names_of(const agreed_view& view) {
  std::vector<std::string> out;
  for (const auto& m : view.members) out.push_back(view.name_of(m.seat));
  return comma_list(out);
}

}  // namespace

witness::witness(actor_context context, node_setup setup)
    : actor(context), setup_(std::move(setup)), members_(membership()) {}

member_setup witness::membership() {
  member_setup m;
  const auto& c = setup_.cluster;
  m.network = c.network;
  m.as = link_identity::purpose::witness;
  m.token = c.token;
  m.tls = c.tls;
  m.stop = c.stop;
  m.display = setup_.display;
  m.tell = [this](const port<send_frame>& link, send_frame f) { tell(link, std::move(f)); };
  m.equip = [this](seat_id, link_options& o) {
    o.binding.routes.control = handle<witness>(this);
    o.binding.routes.lost = handle<witness>(this);
    o.silence_limit = setup_.cluster.silence_limit;
    o.least_silence_limit = setup_.cluster.least_silence_limit;
    o.stall_limit = std::max(o.stall_limit, o.silence_limit);
  };
  return m;
}

member_context witness::here() {
  return {system(), *setup_.edges, handle<witness>(this), handle<witness>(this)};
}

void witness::started() {
  // There is no actor above this one that would hear of it.
  set_exception_handler([this](std::exception_ptr& thrown) -> caf::error {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      end(1, std::string("witness: ") + e.what());
    } catch (...) {
      end(1, "witness: unknown exception");
    }
    return caf::exit_reason::normal;
  });
}

/// Told to exit by another actor than its own.
void witness::ended() {
  if (!has_ended_) end(1, "internal error: the witness was stopped");
}

// -- it joins --------------------------------------------------------------------------------------------

void witness::on(const start_node&) {
  at_ = setup_.cluster.join;
  guarded([this] { dial(); });
}

void witness::on(const join_later&) {
  if (!has_ended_) guarded([this] { dial(); });
}

void witness::dial() {
  if (at_.empty()) return;
  members_.start_over();
  try {
    members_.join(at_, 0, setup_.cluster.listen, here());
  } catch (const leader_unsettled&) {
    if (++put_off_ > most_dials) throw;
    return tell_self(join_later{}, before_it_dials_again);
  }
  at_.clear();
  put_off_ = 0;
}

/// Ends its links; with the last of them it dials, whoever answers of the members and of the addresses that its user gave.
void witness::join_again(const std::string& why, seat_id without) {
  setup_.display->note(why + "; joining again");
  is_ready_ = false;
  for (const auto& m : view().members)
    if (m.seat != without) at_.push_back(parse_host_port(m.address));
  at_.insert(at_.end(), setup_.cluster.join.begin(), setup_.cluster.join.end());
  for (const auto& [seat, link] : members_.links()) tell<close_link>(link, {"it joins again"});
  if (members_.links().empty()) tell_self(join_later{}, before_it_dials_again);
}

void witness::lost_before_it_votes(const link_lost& m) {
  const bool has_seat = view().seat != no_seat;
  if (at_.empty()) {
    if (has_seat && m.peer != view().leader()) return;  // it may have left
    if (m.reason) return end(m.of == frames::goodbye::cause::refused ? 2 : 3, m.why);
    return join_again("the leader is gone", m.peer);
  }
  if (members_.links().empty()) tell_self(join_later{}, before_it_dials_again);
}

/// The run, from its leader: links all members, and says that it is ready.
void witness::take(const frames::view& f) {
  if (!f.prospect || votes() || is_ready_ || !at_.empty()) return;
  members_.enter(view_told(f));
  bind_links();
  try {
    members_.dial_members(here());
  } catch (const socket_error& e) {
    if (e.error == ECANCELED || ++unreached_ == most_missed) throw;
    return join_again(e.what(), no_seat);
  }
  bind_links();
  members_.to_leader(frames::join_ready{1});
  is_ready_ = true;
  setup_.display->note("joined as witness " + std::to_string(value(view().seat)) + " of " +
                       plural(view().members.size(), "node") +
                       ", and votes from the next view on; this node listens on " +
                       members_.address());
}

/// What this node writes bears its seat; what the others write is for it, whatever their views are.
void witness::bind_links() {
  for (const auto& [seat, link] : members_.links()) {
    auto b = std::make_shared<link_binding>();
    b->self = {view().seat, view().epoch};
    b->peer = seat;
    b->routes.control = handle<witness>(this);
    b->routes.lost = handle<witness>(this);
    b->may_be_lost = true;
    tell<bind_link>(link, {std::move(b)});
  }
}

void witness::on(const link_accepted& m) {
  if (has_ended_) return;
  const auto& peer = m.connection.peer;
  using purpose = link_identity::purpose;
  if (peer.wants == purpose::look) return;  // it has heard, and the connection ends
  if (peer.wants == purpose::ask_to_go_on)
    return members_.turn_away(m.connection,
                              "this node is a witness, and waits for nobody: ask one that trains");
  if (peer.wants == purpose::ask_to_leave) {
    members_.dismiss(m.connection);
    return leave(0, "asked to by poseidon-node leave");
  }
  const bool is_of_this_run = votes() && peer.seat != no_seat && peer.run == view().run;
  if (is_of_this_run && peer.epoch > 0 && peer.epoch < view().epoch && !view().has(peer.seat) &&
      members_.is_gone(peer.seat))
    return members_.turn_away(m.connection, "the other nodes go on without it",
                              frames::goodbye::cause::left_out);
  if (members_.admit(m.connection, false, here()) != member::admission::linked) return;
  bind_links();
  if (!view().has(peer.seat) || !votes()) return;
  absent_.erase(peer.seat);
  members_.send(peer.seat, send_frame{change_.next(), {}, 0});
}

void witness::on(const peer_refused& m) {
  setup_.display->note("refused: " + m.text);
}

// -- it votes --------------------------------------------------------------------------------------------

void witness::on(const control_arrived& m) {
  if (has_ended_) return;
  guarded([&] {
    std::visit(
        overloaded{
            [&](const frames::view& f) { take(f); }, [&](const frames::next_view& f) { take(f); },
            [&](const frames::view_prepare&) { vote(m); },
            [&](const frames::view_accept&) { vote(m); },
            [](const auto&) {},  // of those that train
        },
        m.header);
  });
}

void witness::vote(const control_arrived& m) {
  if (!votes()) return;
  view_facts now{.view = view()};
  for (const auto& [seat, link] : members_.links()) now.linked.push_back(seat);
  change_.hears(m.seat, m.header, now);
  while (const auto action = change_.take_action())
    if (const auto* letter = std::get_if<view_action::send>(&*action))
      members_.send(letter->to, send_frame{letter->frame, {}, 0});
}

/// The members have decided it, from whichever of them this comes.
void witness::take(const frames::next_view& next) {
  const auto seat = view().seat;
  if (seat == no_seat || next.epoch <= view().epoch) return;
  if (has_seat(next.lost, seat))
    return left_out("the other nodes go on without this witness from iteration " +
                    std::to_string(value(next.first_clock)) + " on: they have not heard it (" +
                    next.why + ")");
  if (is_among(next.witnesses, seat)) return enter(next);
  if (!votes()) return;
  setup_.display->note("left the run before iteration " + std::to_string(value(next.first_clock)) +
                       "; " + plural(next.members.size(), "node") + " go on");
  end(leaves_with_.value_or(0), "");
}

void witness::enter(const frames::next_view& next) {
  const auto leader = view().leader();
  const bool begins = !votes();
  members_.enter(following(view(), next));
  change_.enters(next.first_clock, 0, next);
  std::erase_if(absent_, [&](const auto& a) { return !view().has(a.first); });
  std::erase_if(goodbyes_, [&](const auto& g) { return !view().has(g.first); });
  setup_.display->note("view " + std::to_string(next.epoch) + ": " + names_of(view()) +
                       (view().members.size() == 1 ? " trains" : " train") + " from iteration " +
                       std::to_string(value(next.first_clock)) + " on, and this witness votes" +
                       (next.why.empty() ? "" : ": " + next.why));
  bind_links();
  if (begins || leader != view().leader()) say_that_it_leaves();
  end_if_all_have();
}

}  // namespace poseidon
