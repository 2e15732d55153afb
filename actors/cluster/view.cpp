#include "actors/cluster/view.hpp"

#include "actors/links/network_link.hpp"

#include <utility>

namespace poseidon {

std::string agreed_view::name_of(worker_id w) const {
  return has(w) ? peer_name(w, members[value(w)]) : "worker " + std::to_string(value(w));
}

std::vector<worker_id> agreed_view::to_dial() const {
  std::vector<worker_id> out;
  for (std::uint32_t w = 0; has(self) && w < value(self); ++w)
    if (worker_id{w} != leader) out.push_back(worker_id{w});
  return out;
}

bool agreed_view::is_dialed_by(worker_id w) const {
  return has(self) && has(w) && value(w) > value(self);
}

std::vector<std::string> agreed_view::lines() const {
  std::vector<std::string> out;
  for (std::uint32_t w = 0; w < members.size(); ++w)
    out.push_back("view " + std::to_string(epoch) + ": " + name_of(worker_id{w}) +
                  (worker_id{w} == self ? ", this node" : ""));
  return out;
}

agreed_view view_of_leader() {
  agreed_view v;
  v.self = v.leader;
  return v;
}

agreed_view formed(agreed_view leaders, std::vector<std::string> members) {
  ++leaders.epoch;
  leaders.members = std::move(members);
  return leaders;
}

agreed_view view_told(const frames::view& v, worker_id leader) {
  return {v.epoch, v.you, leader, v.members, v.first_clock, v.routes, v.shares};
}

agreed_view with_routes(agreed_view before, const frames::change_routes& change) {
  ++before.epoch;
  before.first_clock = change.clock;
  before.routes = change.routes;
  return before;
}

}  // namespace poseidon
