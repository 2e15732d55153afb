#include "actors/cluster/coordinator.hpp"

#include <algorithm>

namespace poseidon {

coordinator::coordinator(actor_context context, coordinator_setup setup)
    : actor(context), setup_(std::move(setup)), members_{setup_.own_address} {}

void coordinator::on(const connect_coordinator& m) {
  node_ = m;
}

void coordinator::on(const member_joined& m) {
  members_.push_back(m.address);
  if (members_.size() == setup_.workers) tell(node_->view, view_agreed{members_});
}

void coordinator::on(const member_is_ready& m) {
  ready_.insert(m.worker);
  if (ready_.size() < setup_.workers) return;
  change_.reset();
  tell(node_->ready, everyone_ready{});
}

void coordinator::on(const change_wanted& m) {
  if (change_ || ready_.size() < setup_.workers) return;
  change_ = m;
  held_.clear();
  drained_.clear();
  if (!m.clock) tell(node_->hold, hold_everyone{});
}

void coordinator::on(const member_paused& m) {
  if (!change_) return;
  if (!m.drained) {
    held_[m.worker] = m.clock;
    if (change_->clock || held_.size() < setup_.workers) return;
    const auto latest = std::max_element(held_.begin(), held_.end(),
                                         [](auto& a, auto& b) { return a.second < b.second; });
    change_->clock = latest->second;
    tell(node_->agreed, change_agreed{latest->second, change_->routes, change_->why});
    return;
  }
  if (!change_->clock || m.clock != *change_->clock) return;
  drained_.insert(m.worker);
  if (drained_.size() < setup_.workers) return;
  ready_.clear();
  tell(node_->drained, everyone_drained{});
}

void coordinator::on(const member_is_done& m) {
  done_.insert(m.worker);
  if (done_.size() == setup_.workers) tell(node_->done, everyone_done{});
}

void coordinator::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
