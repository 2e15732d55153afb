#include "gpu/cuda/cudnn_descriptor.hpp"

#include "gpu/runtime/error.hpp"

namespace poseidon::gpu::cuda {
namespace {

/// cuDNN numbers its errors by thousands, one for each of the general ones.
error_kind kind_of(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) return error_kind::memory;
  switch (status / 1000) {
    case CUDNN_STATUS_NOT_INITIALIZED / 1000:
      return error_kind::absent;
    case CUDNN_STATUS_NOT_SUPPORTED / 1000:
      return error_kind::unsupported;
    case CUDNN_STATUS_EXECUTION_FAILED / 1000:
      return error_kind::lost;
    default:
      return error_kind::misused;
  }
}

}  // namespace

void check(cudnnStatus_t status, const std::source_location& where) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> message{};
  cudnnGetLastErrorString(message.data(), message.size());
  throw error(kind_of(status), status,
              std::string("cuDNN: ") + cudnnGetErrorString(status) + " in " +
                  where.function_name() + ": " + message.data());
}

std::vector<cudnn_descriptor> cudnn_descriptor::descriptors(
    cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const {
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr));
  std::vector<cudnn_descriptor> found;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < count; ++i) handles.push_back(found.emplace_back(type).get());
  if (count == 0) return found;
  check(cudnnBackendGetAttribute(handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count,
                                 handles.data()));
  found.erase(found.begin() + count, found.end());
  return found;
}

}  // namespace poseidon::gpu::cuda
