// tests/fuzz/target.hpp - what the fuzz targets share: bytes as a file, and which errors are right.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace poseidon::fuzz {

/// The input as a file without a disk, for readers that take a path.
class memory_file {
 public:
  memory_file(const std::uint8_t* bytes, std::size_t size) : fd_(::memfd_create("input", 0)) {
    if (fd_ < 0 || ::write(fd_, bytes, size) != static_cast<ssize_t>(size)) ::abort();
  }
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;
  ~memory_file() { ::close(fd_); }
  [[nodiscard]] std::filesystem::path path() const {
    return "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  int fd_;
};

/// Bad input may be refused with a sentence (std::runtime_error, std::invalid_argument and what
/// derives from them). Anything else, std::bad_alloc and std::out_of_range for two, is a finding.
template <class Read>
int accept_or_refuse(Read read) {
  try {
    read();
  } catch (const std::runtime_error&) {
  } catch (const std::invalid_argument&) {
  }
  return 0;
}

}  // namespace poseidon::fuzz
