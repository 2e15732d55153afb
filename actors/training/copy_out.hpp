// actors/training/copy_out.hpp
//
// Brings home what the kernels of one replica have made on a device that goes on by itself: gradients, as soon as their
// layer's backward pass is over there and while lower layers compute, and the values of net outputs. The device's own
// thread says when something has arrived; nobody waits for it.
//
// Accepts  copy_to_host       from stream  in the order in which the work was issued
//          copied_to_host        from itself  said by the device's thread, once for each
//          shut_down        from node    after the last pass
// Sends    work_done        to layer     for work that carries a reply port
//          nonfinite_found  to solver    once, when an output is NaN or infinite
// State    what is on its way, by ticket.
// Fails    what the device says has gone wrong ends the actor; node reports the text.
// Detached: it adds up the gradients of replicas.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/core/trace.hpp"
#include "actors/training/copies_in_flight.hpp"
#include "messages/training.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace poseidon {

struct copy_out_setup {
  std::function<void()> enter_thread;  ///< run once, in this actor's own thread
  std::function<std::optional<std::string>()> first_nonfinite;
  port<nonfinite_found> solver;
  std::shared_ptr<copies_in_flight> home;  ///< of the stream; null: nobody asks
  trace_lane* trace = nullptr;
};

class copy_out : public actor<copy_out> {
 public:
  static constexpr const char* type_name = "copy_out";
  using accepts = messages<copy_to_host, copied_to_host, shut_down>;
  using sends = messages<work_done, nonfinite_found>;

  copy_out(actor_context context, copy_out_setup setup);
  void on(const copy_to_host& m);
  void on(const copied_to_host& m);
  void on(const shut_down& m);
  /// What is on its way holds the ports of layers, and those hold the stream that holds this actor: whatever it ends
  /// of, nobody would ever be released.
  void on_exit() override { under_way_.clear(); }

 private:
  struct on_its_way {
    issue_work work;
    std::int64_t since_ns = 0;
  };
  void check_finite(const issue_work& m, const std::vector<float>& outputs);

  copy_out_setup setup_;
  std::uint64_t next_ticket_ = 0;
  std::map<std::uint64_t, on_its_way> under_way_;
  std::int64_t last_arrival_ns_ = 0;
  bool entered_ = false;
  bool reported_ = false;
};

}  // namespace poseidon
