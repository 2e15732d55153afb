// actors/training/stream.hpp
//
// One queue of kernels of one replica: executes work in the order of its mailbox and sends the replies that were asked
// for. Layers issue ahead, and none of them waits for the device. On a CPU a stream is a compute lane: one thread, pinned to
// no core, that runs oneDNN.
//
// On an asynchronous device to execute a kernel is to add it to the device's own queue, and copy_out waits for the results
// that the host needs. There each replica has a second stream, copy_in, which has fresh parameters copied to the device.
//
// Accepts  issue_work       from layer   in an order that respects the net's edges
//          shut_down        from node    after the last pass
// Sends    work_done        to layer     for work that carries a reply port
//          copy_to_host     to copy_out  instead, for work whose results have to be copied first
//          nonfinite_found  to solver    once, when an output is NaN or infinite
// State    when it ended its last work.
// Fails    a kernel that throws ends the actor; node reports the text.
// Detached: it computes.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/core/overlap_meter.hpp"
#include "actors/core/trace.hpp"
#include "actors/training/copies_in_flight.hpp"
#include "actors/training/finished_work.hpp"
#include "actors/training/work.hpp"
#include "messages/training.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace poseidon {

struct stream_setup {
  std::function<void()> enter_thread;  ///< run once, in the stream's own thread
  std::function<std::optional<std::string>()> first_nonfinite;
  port<nonfinite_found> solver;
  port<poseidon::copy_to_host> copy_out;     ///< asynchronous devices
  std::shared_ptr<copies_in_flight> copies;  ///< asynchronous devices; null in copy_in
  std::shared_ptr<overlap_meter> overlap;
  trace_lane* trace = nullptr;
};

class stream : public actor<stream> {
 public:
  static constexpr const char* type_name = "stream";
  using accepts = messages<issue_work, shut_down>;
  using sends = messages<work_done, poseidon::copy_to_host, nonfinite_found>;

  stream(actor_context context, stream_setup setup);
  void on(const issue_work& m);
  void on(const shut_down& m);

 private:
  void account_for_stall(const issue_work& m, std::int64_t now);

  until_end<stream_setup> setup_{this};
  until_end<result_reader> results_{this};
  std::int64_t idle_since_ns_ = 0;
  bool entered_ = false;
};

}  // namespace poseidon
