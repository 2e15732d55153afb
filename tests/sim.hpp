// tests/sim.hpp
//
// Actors without threads, ports or time: CAF's testing scheduler runs one message at a time on the
// thread of the test, and its clock stops until the test advances it. So a test says what
// was told, lets everything settle, and looks at what arrived.
//
//   test::sim sim;
//   auto shard = sim.listen<push_gradient>();
//   auto push = sim.spawn<gradient_push>("push fc7", shard.in);
//   sim.tell(push, backward_done{...});
//   sim.settle();
//   REQUIRE(shard.got->size() == 1);
//
// Detached actors have a thread of their own and do not fit in here: test what they decide as
// functions.
#pragma once
#include "actors/core/actor.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/settings.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace poseidon::test {

/// Takes messages of one type and keeps them in order of arrival.
template <class M>
class listener : public actor<listener<M>> {
 public:
  static constexpr const char* type_name = "listener";
  using accepts = messages<M>;
  using sends = messages<>;

  listener(actor_context context, std::shared_ptr<std::vector<M>> got)
      : actor<listener<M>>(context), got_(std::move(got)) {}
  void on(const M& m) { got_->push_back(m); }
  /// The kept messages may hold ports to actors that hold this one, so that none of them would ever be released.
  void ended() { got_.reset(); }

 private:
  std::shared_ptr<std::vector<M>> got_;
};

/// A port for the tested actor (`in`), and the messages that arrived through it.
template <class M>
struct probe {
  port<M> in;
  std::shared_ptr<std::vector<M>> got;
};

class sim {
 public:
  sim() : system_(config_), scheduler_(dynamic_cast<scheduler&>(system_.scheduler())) {}
  sim(const sim&) = delete;
  sim& operator=(const sim&) = delete;
  /// Ends what it spawned and is still alive; what those spawned themselves has to end with them.
  ~sim() {
    for (auto& a : spawned_) caf::anon_send_exit(a, caf::exit_reason::user_shutdown);
    spawned_.clear();
    settle();
  }

  template <class M>
  probe<M> listen() {
    auto got = std::make_shared<std::vector<M>>();
    return {spawn<listener<M>>("listener", got), got};
  }

  /// An actor of type D in the simulated scheduler, with the constructor arguments after its
  /// context.
  template <class D, class... Args>
  handle<D> spawn(std::string name, Args&&... args) {
    auto h = add<D>(std::move(name), std::forward<Args>(args)...);
    settle();
    return h;
  }
  /// As spawn, but nothing is handled yet.
  template <class D, class... Args>
  handle<D> add(std::string name, Args&&... args) {
    auto h = poseidon::spawn<D>(system_, book_, thread_kind::shared, std::move(name),
                                std::forward<Args>(args)...);
    spawned_.push_back(h.untyped());
    return h;
  }

  /// The error that the actor ends with; empty until then. The text may be read after the simulation, which ends what still
  /// lives: so it must not lie in a member that is destroyed before.
  template <class D>
  std::shared_ptr<const std::string> fault_of(const handle<D>& h) {
    auto text = std::make_shared<std::string>();
    h.untyped()->attach_functor([text, &s = system_](const caf::error& e) {
      if (e) *text = s.render(e);
    });
    return text;
  }

  /// Puts `m` into the mailbox; nothing runs before settle() or step().
  template <class D, class M>
  void tell(const handle<D>& to, M m) {
    tell_from_outside(to, std::move(m));
  }
  template <class M>
  void tell(const port<M>& to, M m) {
    caf::anon_send(caf::actor_cast<caf::actor>(to.target()), std::move(m));
  }
  /// Handles messages until no mailbox holds any; says how many resumptions that took.
  std::size_t settle() { return scheduler_.run(); }
  /// Lets one actor handle what it would in one turn; false if no actor has a message.
  bool step() { return scheduler_.try_run_once(); }
  /// Lets an actor chosen by `random` handle its messages: any order that real threads could take, too. For some hundred steps
  /// at a time one of them, drawn as well, gets no turn while others have something to do: a thread that is held up.
  template <class Random>
  bool step_any(Random& random) {
    auto& jobs = scheduler_.jobs;
    if (jobs.empty()) return false;
    if (steps_++ % 256 == 0) held_up_ = jobs[random() % jobs.size()];
    auto next = random() % jobs.size();
    if (jobs[next] == held_up_) next = (next + 1) % jobs.size();
    std::swap(jobs.front(), jobs[next]);
    return step();
  }
  /// Lets time pass for delayed messages (tell_self with a delay), then settles.
  void advance(std::chrono::milliseconds by) {
    pass(by);
    settle();
  }
  /// As advance, but nothing is handled yet.
  void pass(std::chrono::milliseconds by) { scheduler_.advance_time(by); }

  [[nodiscard]] caf::actor_system& system() { return system_; }
  [[nodiscard]] edge_book& book() { return book_; }

 private:
  using scheduler = caf::scheduler::test_coordinator;
  struct config : caf::actor_system_config {
    config() {
      set("scheduler.policy", caf::atom("testing"));
      set("logger.console", caf::atom("none"));
    }
  };

  config config_;
  edge_book book_;
  caf::actor_system system_;
  scheduler& scheduler_;
  std::vector<caf::actor> spawned_;
  std::size_t steps_ = 0;
  const void* held_up_ = nullptr;
};

}  // namespace poseidon::test
