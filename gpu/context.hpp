// gpu/context.hpp
//
// The resources that the replicas of one place in a node share: three streams, the libraries, the thread that waits, and
// the parameters in device memory, which the nets for training and for tests both read.
#pragma once
#include "gpu/device_parameter.hpp"
#include "gpu/reaper.hpp"
#include "gpu/runtime/library.hpp"

#include <map>
#include <memory>

namespace poseidon::gpu {

struct context {
  context(int on, const library_options& options)
      : device(on),
        compute(on, stream_use::compute),
        copy_in(on, stream_use::copy_in),
        copy_out(on, stream_use::copy_out),
        libraries(compute, options),
        waits(on) {}

  /// The parameter for these values, made when the first replica asks. Replicas are made by one thread.
  [[nodiscard]] std::shared_ptr<device_parameter> parameter(const parameter_values& source,
                                                            std::size_t values) {
    auto& known = parameters[&source];
    auto it = known.lock();
    if (it == nullptr) {
      it = std::make_shared<device_parameter>(device, source, values);
      known = it;
    }
    return it;
  }

  const int device;
  stream compute, copy_in, copy_out;
  library libraries;
  std::map<const parameter_values*, std::weak_ptr<device_parameter>> parameters;
  reaper waits;  ///< last: it ends before the streams that it waits for
};

}  // namespace poseidon::gpu
