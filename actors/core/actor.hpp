// actors/core/actor.hpp
//
// The one place that knows CAF: what an actor is, how it is spawned, how it sends. An actor is a class
//
//   class gradient_push : public actor<gradient_push> {
//    public:
//     static constexpr const char* type_name = "gradient_push";
//     using accepts = messages<backward_done, chunk_fresh>;
//     using sends   = messages<push_gradient, parameters_fresh>;
//     gradient_push(actor_context context, ...);
//     void on(const backward_done& m);     // one per accepted message: a missing one does not compile
//     void on(const chunk_fresh& m);
//   };
//
// and it reaches others only through `port<M>`, a handle that takes one kind of message, with tell(), which
// refuses to compile a message that `sends` does not list and counts what it sent by (receiver, message).
// So the graph drawn from accepts/sends is enforced and the graph drawn from the counters is measured.
// Ports that arrive after the constructor lie in an until_end<T>: actors that hold ports of each other would otherwise
// keep each other, and their threads, forever.
#pragma once
#include "actors/core/actor_failure.hpp"
#include "actors/core/edges.hpp"
#include "messages/port.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace poseidon {

/// A list of message types.
template <class... Ms>
struct messages {
  template <class M>
  static constexpr bool has = (std::is_same_v<M, Ms> || ...);
};

/// A handle to an actor of type D; converts to a port for each message that D accepts.
template <class D>
class handle {
 public:
  handle() = default;
  explicit handle(caf::actor a) : to_(caf::actor_cast<caf::strong_actor_ptr>(std::move(a))) {}
  explicit handle(D* self) : to_(caf::actor_cast<caf::strong_actor_ptr>(self)) {}
  explicit operator bool() const noexcept { return to_ != nullptr; }

  template <class M>
  operator port<M>() const {
    static_assert(D::accepts::template has<M>,
                  "this actor does not list that message in `accepts`");
    return port<M>{to_};
  }
  [[nodiscard]] caf::actor untyped() const { return caf::actor_cast<caf::actor>(to_); }

 private:
  caf::strong_actor_ptr to_;
};

/// Handed to every actor's constructor by spawn(): its name and where it counts.
struct actor_context {
  caf::actor_config& config;
  std::string name;                   ///< unique in the node: "layer conv1 [0]"
  std::shared_ptr<edge_table> edges;  ///< where tell() counts; shared with telemetry
};

template <class D>
class actor;

template <class D>
class voice;

namespace detail {
class dropped_at_end {
 public:
  virtual void drop() = 0;

 protected:
  ~dropped_at_end() = default;
};

template <class D, class... Ms>
caf::behavior behavior_of(D* self, messages<Ms...>) {
  return {[self](const Ms& m) {
    self->count_handled();
    self->on(m);
    self->handled();
  }...};
}
}  // namespace detail

/// A member of an actor that becomes T{} when the actor ends, also by an exception, and before anybody hears of the end. The actor
/// itself may live on for as long as somebody has a handle, as the receiver of its last message may, and go in any thread.
template <class T>
class until_end final : detail::dropped_at_end {
 public:
  template <class D>
  explicit until_end(actor<D>* owner) {
    owner->dropped_at_end_.push_back(this);
  }
  until_end(const until_end&) = delete;
  until_end& operator=(const until_end&) = delete;
  until_end& operator=(T value) {
    value_ = std::move(value);
    return *this;
  }
  T& operator*() { return value_; }
  const T& operator*() const { return value_; }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }

 private:
  void drop() override { value_ = T{}; }
  T value_{};
};

template <class D>
class actor : public caf::event_based_actor {
 public:
  explicit actor(actor_context& context)
      : caf::event_based_actor(context.config),
        name_(std::move(context.name)),
        edges_(std::move(context.edges)) {
    this->attach_functor([this, counted = edges_] {
      for (auto* member : dropped_at_end_) member->drop();
      counted->end();
    });
    this->set_exception_handler(
        [this](std::exception_ptr& thrown) { return error_of(thrown, name_); });
  }

  const char* name() const override { return name_.c_str(); }
  caf::behavior make_behavior() override {
    auto* self = static_cast<D*>(this);
    self->started();
    return detail::behavior_of(self, typename D::accepts{});
  }
  /// Runs in the actor itself before its first message.
  void started() {}
  /// Runs in the actor itself after each message.
  void handled() {}
  /// Runs in the actor itself after its last message, or where it has failed, before anybody hears of the end.
  void ended() {}
  void on_exit() final {
    static_cast<D*>(this)->ended();
    for (auto* member : dropped_at_end_) member->drop();
  }
  /// Before each message is handled; counts those that tell() of another actor has counted.
  void count_handled() {
    const auto& from = this->current_sender();
    if (from != nullptr && from != this->ctrl()) edges_->handle_one();
  }

 protected:
  /// Sends `m`, counted. High priority is a share: where both kinds wait, CAF handles six such messages, then three others (findings/).
  template <class M>
  void tell(const port<M>& to, M m, std::size_t payload_bytes = 0) {
    static_assert(D::sends::template has<M>, "add this message to the actor's `sends` list");
    if (!to) return;
    count(to, payload_bytes);
    send_as(to.target(), caf::make_message_id(), std::move(m));
  }
  template <class M>
  void tell_urgent(const port<M>& to, M m, std::size_t payload_bytes = 0) {
    static_assert(D::sends::template has<M>, "add this message to the actor's `sends` list");
    if (!to) return;
    count(to, payload_bytes);
    send_as(to.target(), caf::make_message_id(caf::message_priority::high), std::move(m));
  }
  /// To itself, after `delay`; needs no declaration in `sends`, but the message must be accepted.
  template <class M>
  void tell_self(M m, std::chrono::milliseconds delay = std::chrono::milliseconds{0}) {
    static_assert(D::accepts::template has<M>, "an actor tells itself only what it accepts");
    if (delay.count() == 0)
      this->send(this, std::move(m));
    else
      this->delayed_send(this, delay, std::move(m));
  }

  /// A function that any thread may call, also after this actor's end, to tell it M{}.
  template <class M>
  [[nodiscard]] std::function<void()> teller_of_self() {
    static_assert(D::accepts::template has<M>, "an actor tells itself only what it accepts");
    return [weak = caf::weak_actor_ptr(this->ctrl())] {
      if (const auto strong = weak.lock())
        strong->enqueue(caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, M{}),
                        nullptr);
    };
  }

  /// A function that any thread may call, also after this actor's end, to tell it the message that it is called with.
  template <class M>
  [[nodiscard]] std::function<void(M)> sender_to_self() {
    static_assert(D::accepts::template has<M>, "an actor tells itself only what it accepts");
    return [weak = caf::weak_actor_ptr(this->ctrl())](M m) {
      if (const auto strong = weak.lock())
        strong->enqueue(
            caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, std::move(m)), nullptr);
    };
  }

 private:
  template <class T>
  friend class until_end;
  friend class voice<D>;

  template <class M>
  void count(const port<M>& to, std::size_t payload_bytes) {
    edges_->count(to.target()->id(), message_name<M>(), payload_bytes);
  }
  template <class M>
  void send_as(const caf::strong_actor_ptr& to, caf::message_id id, M&& m) {
    to->enqueue(caf::make_mailbox_element(ctrl(), id, {}, std::forward<M>(m)), context());
  }

  std::string name_;
  std::shared_ptr<edge_table> edges_;
  std::vector<detail::dropped_at_end*> dropped_at_end_;  // members of this actor
};

/// Speaks in the name of an actor, for the plain objects that are its parts: what they tell is checked and counted as what
/// the actor tells itself. A part must not outlive its actor.
template <class D>
class voice {
 public:
  explicit voice(D* of) : of_(of) {}

  template <class M>
  void tell(const port<M>& to, M m, std::size_t payload_bytes = 0) const {
    static_cast<actor<D>*>(of_)->tell(to, std::move(m), payload_bytes);
  }
  template <class M>
  void tell_urgent(const port<M>& to, M m, std::size_t payload_bytes = 0) const {
    static_cast<actor<D>*>(of_)->tell_urgent(to, std::move(m), payload_bytes);
  }
  /// The actor's down handler hears when `a` ends.
  void monitor(const caf::actor& a) const { of_->monitor(a); }
  /// Where answers to the actor go.
  [[nodiscard]] handle<D> self() const { return handle<D>(of_); }
  [[nodiscard]] caf::actor_system& system() const { return of_->system(); }

 private:
  D* of_;
};

enum class thread_kind { shared, own };  ///< own: a detached actor, which may block and compute

/// Starts an actor named `name` in `system`. Its edges are registered with `book`.
template <class D, class... Args>
handle<D> spawn(caf::actor_system& system, edge_book& book, thread_kind threads, std::string name,
                Args&&... args) {
  auto start = [&]<caf::spawn_options Options>() {
    // CAF hands the config to the constructor; the adapter turns it into our context.
    struct adapter : D {
      adapter(caf::actor_config& config, std::string name, std::shared_ptr<edge_table> edges,
              std::decay_t<Args>... rest)
          : D(actor_context{config, std::move(name), std::move(edges)}, std::move(rest)...) {}
    };
    auto edges = book.open(name, D::type_name);
    auto a = system.spawn<adapter, Options>(name, edges, std::forward<Args>(args)...);
    book.bind(edges, a.id());
    return handle<D>{std::move(a)};
  };
  // In a simulation (tests/sim.hpp) no actor has a thread: each runs when the test says so.
  const bool simulated = caf::get_or(system.config(), "scheduler.policy", caf::atom("sharing")) ==
                         caf::atom("testing");
  return threads == thread_kind::own && !simulated
             ? start.template operator()<caf::detached>()
             : start.template operator()<caf::no_spawn_options>();
}

/// Sends from outside the actor system (main, a signal thread, a test).
template <class D, class M>
void tell_from_outside(const handle<D>& to, M m) {
  static_assert(D::accepts::template has<M>, "this actor does not accept that message");
  caf::anon_send(to.untyped(), std::move(m));
}
template <class M>
void tell_from_outside(const port<M>& to, M m) {
  caf::anon_send(caf::actor_cast<caf::actor>(to.target()), std::move(m));
}

}  // namespace poseidon
