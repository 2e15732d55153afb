#include "actors/parameters/peer_window.hpp"

#include "actors/links/frame_check.hpp"
#include "actors/parameters/handover.hpp"
#include "models/plan/keepers.hpp"

#include <algorithm>
#include <string>
#include <variant>

namespace poseidon {

namespace {

// A peer without an id owns nothing, not even what every worker owns.
static_assert(every_worker != no_worker);

std::string of_chunk(const char* field, chunk_id id) {
  return std::string(field) + " of chunk " + std::to_string(value(id));
}

bool is_set(const by_id<parameter_id, bool>& of, parameter_id p) {
  return of.contains(p) && of[p];
}

/// `got` has to be `next`, and no later than `reached`.
void require_turn(std::string_view kind, const std::string& field, std::uint64_t got,
                  std::uint64_t& next, std::uint64_t reached) {
  if (got != next) throw bad_frame(kind, field, std::to_string(got), std::to_string(next));
  if (got > reached)
    throw bad_frame(kind, field, std::to_string(got),
                    "at most " + std::to_string(reached) + " so far");
  ++next;
}

}  // namespace

peer_window::peer_window(peer_window_setup setup) : setup_(std::move(setup)) {
  const auto first = value(setup_.first_clock);
  const auto chunks = setup_.store->cut().chunks.size();
  next_gradient_.assign(chunks, first);
  // Every later version comes from the chunk's owner.
  for (const auto id : setup_.store->cut().chunks.ids())
    next_version_.push_back(gives_first_values(id) ? first : first + 1);
  next_squares_ = first;
  for (const auto& [layer, store] : setup_.factors) next_factors_[layer] = {first};
  for (const auto& [layer, turns] : setup_.lowrank)
    next_lowrank_[layer] = lowrank_turns::step(setup_.first_clock, false);
}

void peer_window::admit(const frame_header& h) {
  if (setup_.peer == no_worker && is_of_a_view(h) &&
      !std::holds_alternative<frames::install_history>(h) &&
      !std::holds_alternative<frames::fresh_parameters>(h))
    throw bad_frame(kind_name(h), "sender", "a node that has left", "a member");
  std::visit(
      [this](const auto& f) {
        if constexpr (requires { this->take(f); }) this->take(f);
      },
      h);
}

bool peer_window::gives_first_values(chunk_id id) const {
  if (setup_.before == nullptr)
    return setup_.peer == worker_id{0} && !is_set(setup_.has_first, at(id).parameter);
  return setup_.joins &&
         setup_.former_peer == donor_of(id, setup_.before->by_owner.size(), setup_.lost);
}

const chunk& peer_window::at(chunk_id id) const {
  return setup_.store->cut().chunks.at(id);
}

void peer_window::require_owner(std::string_view kind, chunk_id id, worker_id owner) const {
  if (at(id).owner == owner) return;
  if (at(id).owner == every_worker) {
    const auto of = route_of(setup_.store->cut().routes, at(id).parameter);
    const auto by = rank_of(of) > 0 ? of : route::factor_broadcast;
    throw bad_frame(kind, of_chunk("route", id), std::string(to_string(by)),
                    std::string(to_string(route::parameter_server)));
  }
  throw bad_frame(kind, of_chunk("owner", id), "worker " + std::to_string(value(at(id).owner)),
                  "worker " + std::to_string(value(owner)));
}

void peer_window::take(const frames::push_gradient& f) {
  require_owner("push_gradient", f.chunk, setup_.self);
  if (!setup_.learned[at(f.chunk).parameter])
    throw bad_frame("push_gradient", of_chunk("lr_mult", f.chunk), "not 0", "0, it is frozen");
  if (!f.nothing && setup_.peer != worker_id{0} && is_set(setup_.given, at(f.chunk).parameter))
    throw bad_frame("push_gradient", of_chunk("sender", f.chunk),
                    "worker " + std::to_string(value(setup_.peer)), "worker 0, which gives it");
  // The peer computes a gradient with a version that this node's shard has sent, and that is at most `staleness`
  // older than its clock.
  require_turn(
      "push_gradient", of_chunk("clock", f.chunk), value(f.clock), next_gradient_[f.chunk],
      setup_.staleness + std::max(value(setup_.first_clock), setup_.store->applied(f.chunk)));
}

/// Of any parameter on this node.
std::uint64_t peer_window::newest_version() const {
  std::uint64_t newest = value(setup_.first_clock);
  for (const auto p : setup_.learned.ids()) newest = std::max(newest, setup_.store->version(p));
  return newest;
}

void peer_window::take(const frames::gradient_squares& f) {
  // The peer has this node's gradients of that clock, so some of this node's parameters have been fresh enough for it.
  // Not all: of two branches of the net one may be a clock ahead.
  require_turn("gradient_squares", "clock", value(f.clock), next_squares_,
               newest_version() + setup_.staleness);
}

void peer_window::take(const frames::fresh_parameters& f) {
  const auto first = value(setup_.first_clock);
  const auto version = value(f.version);
  const bool initial = version == first && gives_first_values(f.chunk);
  if (!initial) {
    require_owner("fresh_parameters", f.chunk, setup_.peer);
    if (is_keeper(setup_.store->cut(), f.chunk, setup_.self))
      throw bad_frame("fresh_parameters", of_chunk("receiver", f.chunk), "its keeper",
                      "a node that keeps no copy of its solver state");
  }
  // A new version includes this node's gradient of the clock before, computed with a version at most `staleness` older.
  const auto reached =
      initial ? first : setup_.store->version(at(f.chunk).parameter) + setup_.staleness + 1;
  require_turn("fresh_parameters", of_chunk("version", f.chunk), version, next_version_[f.chunk],
               reached);
}

void peer_window::take(const frames::shared_state& f) {
  const auto text = [](const frames::shared_state& s) {
    return std::to_string(s.first) + " of entry " + std::to_string(s.index);
  };
  const bool more = next_shared_ < setup_.shared.size();
  if (const auto next = more ? setup_.shared[next_shared_] : frames::shared_state{};
      !more || f.index != next.index || f.first != next.first)
    throw bad_frame("shared_state", "first byte", text(f),
                    more ? text(next) : "none, as this node has them all");
  ++next_shared_;
}

/// It makes the next version of the chunk, as fresh_parameters would.
void peer_window::take(const frames::summed_gradient& f) {
  require_owner("summed_gradient", f.chunk, setup_.peer);
  if (!is_keeper(setup_.store->cut(), f.chunk, setup_.self))
    throw bad_frame("summed_gradient", of_chunk("receiver", f.chunk),
                    "worker " + std::to_string(value(setup_.self)), "a keeper of its solver state");
  if (next_version_[f.chunk] == value(setup_.first_clock))
    throw bad_frame("summed_gradient", of_chunk("time", f.chunk), "now",
                    "after the chunk's first values");
  auto clock = next_version_[f.chunk] - 1;
  require_turn("summed_gradient", of_chunk("clock", f.chunk), value(f.clock), clock,
               setup_.store->version(at(f.chunk).parameter) + setup_.staleness);
  ++next_version_[f.chunk];
}

/// Did this peer keep the first of those values in the view before? What all members kept, one of them gives to those that join.
bool peer_window::may_give(const frames::install_history& f) const {
  if (setup_.before == nullptr) return setup_.peer == worker_id{0};
  const auto& now = at(f.chunk);
  const auto place = now.offset + f.first;
  for (const auto id : setup_.before->by_parameter[now.parameter]) {
    const auto& c = setup_.before->chunks[id];
    if (place < c.offset || place >= c.offset + c.count) continue;
    if (c.owner != every_worker)
      return giver_of(*setup_.before, id, setup_.lost, setup_.zeroes_lost_state) ==
             setup_.former_peer;
    return setup_.joins &&
           setup_.former_peer == donor_of(f.chunk, setup_.before->by_owner.size(), setup_.lost);
  }
  return false;
}

void peer_window::take(const frames::install_history& f) {
  if (setup_.before == nullptr && setup_.peer != worker_id{0})
    throw bad_frame("install_history", "from", std::to_string(value(setup_.peer)), "0");
  if (setup_.before != nullptr && setup_.former_peer == no_worker)
    throw bad_frame("install_history", "from", "a node that was no member of the view before",
                    "one that was");
  if (!may_give(f))
    throw bad_frame("install_history", of_chunk("former owner", f.chunk), "another worker",
                    "worker " + std::to_string(value(setup_.former_peer)));
  if (!has_state(setup_.store->cut(), f.chunk, setup_.self))
    require_owner("install_history", f.chunk, setup_.self);
  const auto now = setup_.store->applied(f.chunk);
  if (now > value(setup_.first_clock))
    throw bad_frame("install_history", of_chunk("time", f.chunk), "version " + std::to_string(now),
                    "before the first update");
}

void peer_window::take(const frames::history& f) {
  require_owner("history", f.chunk, setup_.peer);
  const auto wanted = setup_.store->gathering();
  if (!wanted) throw bad_frame("history", "time", "now", "while this node gathers a snapshot");
  if (value(f.version) != *wanted)
    throw bad_frame("history", of_chunk("version", f.chunk), std::to_string(value(f.version)),
                    std::to_string(*wanted) + ", which this node has asked for");
  if (gathered_.version != *wanted) {
    gathered_.version = *wanted;
    gathered_.arrived.clear();
  }
  if (!gathered_.arrived.emplace(f.chunk, f.slot).second)
    throw bad_frame("history", of_chunk("slot", f.chunk), std::to_string(f.slot) + " again",
                    "each slot once");
}

void peer_window::take(const frames::factors& f) {
  const auto of_layer = [&](const char* field) {
    return std::string(field) + " of layer " + std::to_string(value(f.layer));
  };
  const auto store = setup_.factors.find(f.layer);
  if (store == setup_.factors.end())
    throw bad_frame("factors", of_layer("route"), std::string(to_string(route::factor_broadcast)),
                    std::string(to_string(route::parameter_server)));
  auto& next = next_factors_.at(f.layer);
  auto shape = store->second->of_node(setup_.peer);
  shape.rows = f.rows;
  auto clock = next.clock;
  // The peer computes clock c with this node's factors of clock c - 1 - staleness.
  require_turn("factors", of_layer("clock"), value(f.clock), clock,
               store->second->sent() + setup_.staleness);
  if (f.first != next.first)
    throw bad_frame("factors", of_layer("first value"), std::to_string(f.first),
                    std::to_string(next.first));
  if (f.first > 0 && f.rows != next.rows)
    throw bad_frame("factors", of_layer("rows"), std::to_string(f.rows), std::to_string(next.rows));
  next.rows = f.rows;
  next.first += factor_piece(shape, f.first);
  if (next.first == shape.values()) next = {clock};
}

/// The owner takes a worker's part of a step when it has sent all before; the others take the owner's when they have sent their part
/// of that step.
void peer_window::take(const frames::lowrank_factor& f) {
  const auto of_layer = [&](const char* field) {
    return std::string(field) + " of layer " + std::to_string(value(f.layer));
  };
  const auto found = setup_.lowrank.find(f.layer);
  if (found == setup_.lowrank.end())
    throw bad_frame("lowrank_factor", of_layer("route"), "lowrank", "another one");
  const auto& turns = *found->second;
  const bool owns = turns.owner == setup_.self;
  if (!owns && turns.owner != setup_.peer)
    throw bad_frame("lowrank_factor", of_layer("sender"),
                    "worker " + std::to_string(value(setup_.peer)),
                    "worker " + std::to_string(value(turns.owner)) + ", which owns its sums");
  auto& next = next_lowrank_.at(f.layer);
  const auto sent = turns.next();
  if (!owns && next >= sent)
    throw bad_frame("lowrank_factor", of_layer("step"), std::to_string(next),
                    "less than " + std::to_string(sent) + " so far");
  require_turn("lowrank_factor", of_layer("step"), lowrank_turns::step(f.clock, f.second), next,
               sent);
}

/// Not every clock is reported, but each at most once, and in their order.
void peer_window::take(const frames::worker_report& f) {
  const auto clock = value(f.clock);
  auto& next = next_report_[f.test_net];
  if (clock < next)
    throw bad_frame("worker_report", "clock", std::to_string(clock),
                    std::to_string(next) + " or more: one report of each clock, in their order");
  // The peer trains clock c with versions that include this node's gradients of clock c - 1 - staleness, for which this node
  // had versions that were at most as stale again.
  const auto& learned = setup_.learned;
  const bool learns =
      std::any_of(learned.begin(), learned.end(), [](const bool learns_one) { return learns_one; });
  const auto most = newest_version() + 2 * setup_.staleness + 1;
  if (learns && clock > most)
    throw bad_frame("worker_report", "clock", std::to_string(clock),
                    "at most " + std::to_string(most) + " so far");
  next = clock + 1;
}

}  // namespace poseidon
