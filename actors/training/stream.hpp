// actors/training/stream.hpp
//
// One queue of kernels of one replica: executes what is issued, in order, and says when those that
// somebody waits for are done. On a CPU it is a compute lane: one thread, bound to nothing, running oneDNN.
// Its mailbox is the queue, so layers issue ahead and nobody waits for the device.
//
// On a device that goes on by itself, executing is handing to the device's own queue; what the host wants of it is
// copy_out's to bring. There a second stream per replica, copy_in, has fresh parameters brought to the device.
//
// Accepts  issue_work       from layer   in an order that respects the net's edges
//          shut_down        from node    after the last pass
// Sends    work_done        to layer     for work that carries a reply port
//          copy_to_host       to copy_out  instead, for work whose results have to come home first
//          nonfinite_found  to solver    once, when an output is NaN or infinite
// State    when it ended its last work.
// Fails    a kernel that throws ends the actor; node reports the text.
// Detached: it computes.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/core/overlap_meter.hpp"
#include "actors/core/trace.hpp"
#include "actors/training/copies_in_flight.hpp"
#include "messages/training.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace poseidon {

struct stream_setup {
  std::function<void()> enter_thread;  ///< run once, in the stream's own thread
  std::function<std::optional<std::string>()> first_nonfinite;
  port<nonfinite_found> solver;
  port<poseidon::copy_to_host> copy_out;   ///< on devices that go on by themselves
  std::shared_ptr<copies_in_flight> home;  ///< there too
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
  void account_for_standing_still(const issue_work& m, std::int64_t now);
  void check_finite(const issue_work& m, const std::vector<float>& outputs);

  stream_setup setup_;
  std::int64_t idle_since_ns_ = 0;
  bool entered_ = false;
  bool reported_ = false;
};

}  // namespace poseidon
