#include "data/mapped_file.hpp"

#include "models/first_bytes.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace poseidon {
namespace {
[[noreturn]] void cannot(const std::filesystem::path& path, const char* doing, int error) {
  throw std::runtime_error(path.string() + ": cannot " + doing + ": " + std::strerror(error));
}
}  // namespace

mapped_file::mapped_file(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) cannot(path, "open it", errno);
  struct stat about {};
  const bool known = ::fstat(file, &about) == 0;
  const int stat_error = errno;
  if (!known || !S_ISREG(about.st_mode)) {
    ::close(file);
    cannot(path, "read it as a file", known ? EISDIR : stat_error);
  }
  size_ = static_cast<std::size_t>(about.st_size);
  void* at = size_ == 0 ? nullptr : ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
  const int map_error = errno;
  ::close(file);
  if (at == MAP_FAILED) cannot(path, "map it", map_error);
  data_ = static_cast<const std::uint8_t*>(at);
  if (const auto pointer = lfs_pointer({static_cast<const char*>(at), size_}); !pointer.empty()) {
    ::munmap(at, size_);
    throw std::runtime_error(path.string() + ": this is " + pointer + ".");
  }
}

mapped_file::mapped_file(mapped_file&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

mapped_file::~mapped_file() {
  if (data_ != nullptr) ::munmap(const_cast<std::uint8_t*>(data_), size_);
}

}  // namespace poseidon
