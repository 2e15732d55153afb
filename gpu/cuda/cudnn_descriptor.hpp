// gpu/cuda/cudnn_descriptor.hpp - cuDNN's graph API through its C interface: descriptors that are filled
// with attributes and then finalized, and errors with cuDNN's own words.
//
// The older convolution calls are deprecated, and cannot be planned on a machine without a GPU; this can.
#pragma once
#include <array>
#include <cstdint>
#include <cudnn.h>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace poseidon::gpu::cuda {

/// Errors   gpu::error with cuDNN's last message.
void check(cudnnStatus_t status,
           const std::source_location& where = std::source_location::current());

/// The attribute type that cuDNN wants beside values of a C++ type.
template <class T>
constexpr cudnnBackendAttributeType_t attribute_type() = delete;
template <>
constexpr cudnnBackendAttributeType_t attribute_type<std::int64_t>() {
  return CUDNN_TYPE_INT64;
}
template <>
constexpr cudnnBackendAttributeType_t attribute_type<std::int32_t>() {
  return CUDNN_TYPE_INT32;
}
template <>
constexpr cudnnBackendAttributeType_t attribute_type<float>() {
  return CUDNN_TYPE_FLOAT;
}
template <>
constexpr cudnnBackendAttributeType_t attribute_type<char>() {
  return CUDNN_TYPE_CHAR;
}
template <>
constexpr cudnnBackendAttributeType_t attribute_type<void*>() {
  return CUDNN_TYPE_VOID_PTR;
}
template <>
constexpr cudnnBackendAttributeType_t attribute_type<cudnnDataType_t>() {
  return CUDNN_TYPE_DATA_TYPE;
}
template <>
constexpr cudnnBackendAttributeType_t attribute_type<cudnnConvolutionMode_t>() {
  return CUDNN_TYPE_CONVOLUTION_MODE;
}
template <>
constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendHeurMode_t>() {
  return CUDNN_TYPE_HEUR_MODE;
}
template <>
constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendNumericalNote_t>() {
  return CUDNN_TYPE_NUMERICAL_NOTE;
}

/// Owns one backend descriptor. Those that it refers to must outlive it.
class cudnn_descriptor {
 public:
  explicit cudnn_descriptor(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &handle_));
  }
  cudnn_descriptor(cudnn_descriptor&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)) {}
  cudnn_descriptor& operator=(cudnn_descriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~cudnn_descriptor() {
    if (handle_ != nullptr) (void)cudnnBackendDestroyDescriptor(handle_);
  }
  [[nodiscard]] cudnnBackendDescriptor_t get() const { return handle_; }

  template <class T>
  cudnn_descriptor& set(cudnnBackendAttributeName_t name, std::span<const T> values) {
    check(cudnnBackendSetAttribute(handle_, name, attribute_type<T>(),
                                   static_cast<std::int64_t>(values.size()), values.data()));
    return *this;
  }
  template <class T>
  cudnn_descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, std::span<const T>(&value, 1));
  }
  cudnn_descriptor& set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    return set(name, std::span<const std::int64_t>(values));
  }
  cudnn_descriptor& set(cudnnBackendAttributeName_t name, const cudnn_descriptor& other) {
    check(
        cudnnBackendSetAttribute(handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other.handle_));
    return *this;
  }
  cudnn_descriptor& finalize() {
    check(cudnnBackendFinalize(handle_));
    return *this;
  }

  /// Up to `most` values of an attribute that is not a descriptor.
  template <class T>
  [[nodiscard]] std::vector<T> values(cudnnBackendAttributeName_t name, std::size_t most) const {
    std::vector<T> found(most);
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(handle_, name, attribute_type<T>(),
                                   static_cast<std::int64_t>(most), &count, found.data()));
    found.resize(static_cast<std::size_t>(count));
    return found;
  }
  /// All descriptors of type `type` that an attribute holds.
  [[nodiscard]] std::vector<cudnn_descriptor> descriptors(cudnnBackendAttributeName_t name,
                                                          cudnnBackendDescriptorType_t type) const;

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

}  // namespace poseidon::gpu::cuda
