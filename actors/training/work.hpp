// actors/training/work.hpp
//
// What a layer has its replica's stream do, and what follows when the results are on the host: right after the kernel
// where a device is synchronous, after a copy that copy_out waits for where it is asynchronous.
#pragma once
#include "actors/core/span_phase.hpp"
#include "messages/training.hpp"
#include "models/device/device.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <string_view>
#include <vector>

namespace poseidon {

/// What work this is: for the reply and for the trace.
struct work_label {
  pass_id pass;
  bool backward = false;
  std::string_view layer;  ///< lives as long as the run
  span_phase phase = span_phase::other;
};

/// How results get to the host from an asynchronous device.
struct host_copy {
  std::function<void(completion)> begin;  ///< called after run(); empty: nothing is copied
  std::function<void()> settle;           ///< called when the copy has finished; may be empty
  /// In the trace. Where nothing is copied, it says what the device does with the gradient instead.
  span_phase phase = span_phase::copy_to_host;
};

/// What happens when the results are on the host.
struct work_results {
  std::function<std::vector<float>()> read_outputs;  ///< values of net outputs; may be empty
  port<work_done> reply;                             ///< empty: no actor waits for this work
};

/// layer -> stream: execute in order. The stream's mailbox is its queue.
struct issue_work {
  work_label label;
  std::function<void()> run;
  host_copy to_host;
  work_results results;
  /// Since when only fresh parameters were missing; 0: they were the first to arrive.
  std::int64_t waited_since_ns = 0;
};

/// stream -> copy_out: this work has been issued, and its results are to be copied to the host.
struct copy_to_host {
  issue_work work;
};

/// copy_out -> itself, from the device's thread: a copy has finished.
struct copied_to_host {
  std::uint64_t ticket = 0;
  std::exception_ptr failed;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::issue_work)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::copy_to_host)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::copied_to_host)
