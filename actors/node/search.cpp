#include "actors/node/search.hpp"

#include "actors/node/node.hpp"

#include <algorithm>

namespace poseidon {

namespace {

/// In ticks of the agreement: five seconds.
constexpr int longest_pause = 250;
constexpr int after_a_refusal = 25;
/// So long after a loss a refused connection proves that the process has ended: it may take some time until it has closed all.
constexpr std::chrono::seconds for_proofs{1};

}  // namespace

void search::begin_anew(std::uint64_t epoch) {
  if (epoch_ == epoch) return;
  epoch_ = epoch;
  found_.clear();
  std::erase_if(absent_, [&](const auto& a) { return core_.newest_address(a.first).empty(); });
}

void search::lost(seat_id seat, bool fresh, std::uint64_t epoch) {
  begin_anew(epoch);
  if (absent_.contains(seat)) return;  // as a newcomer, and now the view has begun
  // A link that the peer has turned away ends long after the one that was lost: the peer may have gone on alone, and ended.
  auto& a = absent_[seat] = {fresh && !found_.contains(seat), core_.setup.cluster.network->now()};
  // The peer has turned the new link away: it has to notice first that the old one is lost.
  if (found_.contains(seat))
    a.due = a.pause = after_a_refusal;
  else
    ask(seat, a);
}

void search::found(seat_id seat) {
  absent_.erase(seat);
  found_.insert(seat);
}

bool search::is_witness(seat_id seat) const {
  return is_among(core_.newest_witnesses(), seat);
}

bool search::only_looks(seat_id seat) const {
  return !is_witness(seat) && (core_.view().seat < seat || core_.comes(seat));
}

void search::tick(std::uint64_t epoch) {
  begin_anew(epoch);
  for (auto& [seat, a] : absent_)
    if (!a.asked && --a.due <= 0) ask(seat, a);
}

void search::ask(seat_id seat, absent& a) {
  const auto address = core_.newest_address(seat);
  if (address.empty()) return;
  if (!seeker_)
    seeker_ =
        spawn<seeker>(core_.as_node.system(), *core_.setup.edges, thread_kind::own, "seeker",
                      core_.setup.cluster.network, core_.members.dialing(), core_.as_node.self());
  auto self = core_.members.own_identity();
  if (only_looks(seat)) self.wants = link_identity::purpose::look;
  core_.as_node.tell<seek>(seeker_, {seat, address, std::move(self)});
  a.asked = true;
}

/// The connection ends with the message, unless it becomes a link.
search::finding search::on(const sought& m, std::uint64_t epoch) {
  const auto found = absent_.find(m.seat);
  if (found == absent_.end()) return finding::nothing;
  auto& a = found->second;
  a.asked = false;
  a.pause = std::min(2 * a.pause, longest_pause);
  a.due = a.pause;
  if (m.is == sought::answer::none) return finding::nothing;
  if (m.is == sought::answer::refused) {
    const bool proves = a.fresh && core_.setup.cluster.network->now() - a.since <= for_proofs;
    return proves ? finding::dead : finding::nothing;
  }
  const auto there = m.connection->peer.epoch;
  if (there > epoch && !is_witness(m.seat)) return finding::this_node_is_out;
  if (only_looks(m.seat) || (there < core_.view().epoch && !is_witness(m.seat)))
    return finding::nothing;
  core_.members.link_again(m.seat, *m.connection, core_.here());
  return finding::linked;
}

void search::end() {
  if (seeker_) core_.as_node.tell<stop_seeking>(seeker_, {});
  seeker_ = {};
}

}  // namespace poseidon
