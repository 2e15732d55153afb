// gpu/runtime/error.hpp - an error of a GPU's runtime or libraries.
#pragma once
#include <stdexcept>
#include <string>

namespace poseidon::gpu {

enum class error_kind {
  absent,      ///< no driver, no device, or too old a driver
  memory,      ///< not enough device memory or pinned memory
  lost,        ///< the device has failed; only a new process can use it again
  misused,     ///< our own bug: a wrong pointer, a wrong ordinal
  unsupported  ///< a library has no way to compute this
};

/// `what()` is one line: the request, the device, and its answer.
class error : public std::runtime_error {
 public:
  error(error_kind kind, int code, const std::string& text)
      : std::runtime_error(text), kind_(kind), code_(code) {}
  [[nodiscard]] error_kind kind() const { return kind_; }
  [[nodiscard]] int code() const { return code_; }  ///< the runtime's or library's own number

 private:
  error_kind kind_;
  int code_;
};

}  // namespace poseidon::gpu
