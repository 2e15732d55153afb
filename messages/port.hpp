// messages/port.hpp - where a message can be sent: a handle to an actor that takes exactly one kind.
#pragma once
#include <caf/actor_control_block.hpp>

#include <utility>

namespace poseidon {

template <class D>
class handle;

/// Copyable, empty by default; made only from the handle of an actor that accepts M (actors/core/actor.hpp),
/// so holding a port is the right to send that message and no other. Messages may carry ports.
template <class M>
class port {
 public:
  port() = default;
  explicit operator bool() const noexcept { return to_ != nullptr; }
  [[nodiscard]] const caf::strong_actor_ptr& target() const noexcept { return to_; }

 private:
  template <class D>
  friend class handle;
  explicit port(caf::strong_actor_ptr to) : to_(std::move(to)) {}
  caf::strong_actor_ptr to_;
};

}  // namespace poseidon
