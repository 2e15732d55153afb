#include "actors/coordinator.hpp"

namespace poseidon {

coordinator::coordinator(actor_context context, coordinator_setup setup)
    : actor(context), setup_(std::move(setup)), members_{setup_.own_address} {}

void coordinator::on(const connect_coordinator& m) {
  node_ = m;
}

void coordinator::on(const member_joined& m) {
  members_.push_back(m.address);
  if (members_.size() == setup_.workers) tell(node_.view, view_agreed{members_});
}

void coordinator::on(const member_is_ready& m) {
  ready_.insert(m.worker);
  if (ready_.size() == setup_.workers) tell(node_.ready, everyone_ready{});
}

void coordinator::on(const member_is_done& m) {
  done_.insert(m.worker);
  if (done_.size() == setup_.workers) tell(node_.done, everyone_done{});
}

void coordinator::on(const shut_down&) {
  node_ = {};
  quit();
}

}  // namespace poseidon
