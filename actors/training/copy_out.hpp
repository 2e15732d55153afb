// actors/training/copy_out.hpp
//
// Waits for results of one replica to reach the host from an asynchronous device: gradients, each as soon as its layer's
// backward pass has ended on the device and while lower layers compute, and the values of net outputs. The device's own
// thread says when a copy has finished; this actor's thread never waits for one.
//
// Accepts  copy_to_host     from stream  in the order in which the work was issued
//          copied_to_host   from itself  said by the device's thread, once for each
//          shut_down        from node    after the last pass
// Sends    work_done        to layer     for work that carries a reply port
//          nonfinite_found  to solver    once, when an output is NaN or infinite
// State    the copies in flight, by ticket.
// Fails    an error of the device ends the actor; node reports the text.
// Detached: it adds up the gradients of replicas.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/core/trace.hpp"
#include "actors/training/copies_in_flight.hpp"
#include "actors/training/finished_work.hpp"
#include "actors/training/work.hpp"
#include "messages/training.hpp"

#include <cstdint>
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
  std::shared_ptr<copies_in_flight> copies;  ///< the stream's; may be null
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

 private:
  struct copy_in_flight {
    issue_work work;
    std::int64_t since_ns = 0;
  };

  until_end<copy_out_setup> setup_{this};
  until_end<result_reader> results_{this};
  std::uint64_t next_ticket_ = 0;
  until_end<std::map<std::uint64_t, copy_in_flight>> in_flight_{this};  // holds ports of layers
  std::int64_t last_arrival_ns_ = 0;
  bool entered_ = false;
};

}  // namespace poseidon
