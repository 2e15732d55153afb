// Whom a witness does not hear, and how it ends: with the run, on its user's word, or because the others go on without it.
#include "actors/node/witness.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace poseidon {

namespace {

constexpr std::chrono::milliseconds look_length{100};
constexpr int longest_wait = 50;  // five seconds
/// A member in a later view may be about to tell that view, which this node may be in.
constexpr int surely_ahead = 3;

}  // namespace

// -- who is not heard ------------------------------------------------------------------------------------

void witness::on(const link_lost& m) {
  if (has_ended_) return;
  members_.lost(m.peer, m.why);
  if (!votes()) return guarded([&] { lost_before_it_votes(m); });
  if (m.of == frames::goodbye::cause::left_out) return left_out(m.why);
  if (!view().has(m.peer)) return;  // it has left, or has not come
  if (m.said_goodbye && m.of != frames::goodbye::cause::writer)
    goodbyes_[m.peer] = m.reason ? m.why : "";
  else
    miss(m.peer, m.why);
  end_if_all_have();
}

void witness::miss(seat_id seat, const std::string& why) {
  setup_.display->note(why);
  absent_[seat] = {};
  if (!std::exchange(looks_, true)) tell_self(look_around{}, look_length);
}

bool witness::is_alone() const {
  const auto& m = view().members;
  return std::none_of(m.begin(), m.end(), [&](const auto& of) { return hears(of.seat); });
}

/// At the end of the run each member says goodbye; one that leaves does so when there is a view without it.
void witness::end_if_all_have() {
  if (has_ended_ || !is_alone() || goodbyes_.empty()) return;
  const auto planned = std::find_if(goodbyes_.begin(), goodbyes_.end(),
                                    [](const auto& g) { return g.second.empty(); });
  if (planned == goodbyes_.end()) return end(3, goodbyes_.begin()->second);
  setup_.display->note("the run has ended");
  end(leaves_with_.value_or(0), "");
}

void witness::on(const look_around&) {
  looks_ = false;
  if (has_ended_ || absent_.empty()) return;
  alone_for_ = is_alone() ? alone_for_ + 1 : 0;
  const auto limit = setup_.cluster.progress_limit;
  if (limit.count() > 0 && alone_for_ * look_length >= limit)
    return end(3, "this witness has heard no member of view " + std::to_string(view().epoch) +
                      " for " + seconds_text(limit) +
                      " (--progress-limit). They have ended, or the network between is down");
  if (alone_for_ > 0 && leaves_with_) return end(*leaves_with_, "");
  for (auto& [seat, a] : absent_) {
    if (a.asked || --a.due > 0) continue;
    a.asked = true;
    const auto& all = view().members;
    const auto to =
        std::find_if(all.begin(), all.end(), [s = seat](const auto& m) { return m.seat == s; });
    if (!seeker_)
      seeker_ = poseidon::spawn<seeker>(system(), *setup_.edges, thread_kind::own, "seeker",
                                        setup_.cluster.network, members_.dialing(),
                                        handle<witness>(this));
    auto self = members_.own_identity();
    self.wants = link_identity::purpose::look;
    tell<seek>(seeker_, {seat, to->address, std::move(self)});
  }
  looks_ = true;
  tell_self(look_around{}, look_length);
}

void witness::on(const sought& m) {
  const auto found = absent_.find(m.seat);
  if (has_ended_ || found == absent_.end()) return;
  auto& a = found->second;
  a.asked = false;
  a.due = a.pause = std::min(2 * a.pause, longest_wait);
  if (m.is != sought::answer::there || m.connection->peer.epoch <= view().epoch) return;
  if (++a.ahead == surely_ahead) left_out("the other nodes have gone on without this witness");
}

// -- it goes ---------------------------------------------------------------------------------------------

void witness::on(const interrupted& m) {
  if (has_ended_) return;
  if (m.snapshot) return setup_.display->note("no snapshot: a witness has no parameters");
  leave(128 + m.signal, "told to end by a signal");
}

/// The others agree on a view without it. Who asks twice, or where nobody hears it, it goes at once, as a loss.
void witness::leave(int exit_code, const std::string& why) {
  const bool asks_again = leaves_with_.has_value() && exit_code > 0;
  if (!votes() || asks_again || !hears(view().leader())) return end(exit_code, "", {why});
  if (!leaves_with_) setup_.display->note("leaving: the other nodes go on without this witness");
  leaves_with_ = exit_code;
  why_it_leaves_ = why;
  say_that_it_leaves();
}

void witness::say_that_it_leaves() {
  if (leaves_with_) members_.to_leader(frames::leave_wanted{why_it_leaves_});
}

/// It may join them again, as another witness. After a planned leave it does not.
void witness::left_out(const std::string& why) {
  for (const auto& m : view().members) others_.push_back(parse_host_port(m.address));
  for (const auto& at : setup_.cluster.join) others_.push_back(at);
  end(3, why);
}

void witness::end(int exit_code, const std::string& error, const frames::goodbye& says) {
  if (std::exchange(has_ended_, true)) return;
  tell<stop_accepting>(members_.acceptor(), {});
  for (const auto& [seat, link] : members_.links())
    tell<close_link>(link, {error.empty() ? says.reason : in_words(error), says.of});
  if (seeker_) tell<stop_seeking>(seeker_, {});
  seeker_ = {};
  setup_.ended({exit_code, in_words(error), std::move(others_)});
  members_.drop();
  quit();
}

}  // namespace poseidon
