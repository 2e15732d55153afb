#include "data/new_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace poseidon {
namespace fs = std::filesystem;

new_file::new_file(fs::path name, bool replace) : name_(std::move(name)) {
  partial_ = name_.string() + ".partial";
  if (fs::is_directory(name_)) throw std::runtime_error(name_.string() + ": is a folder.");
  if (fs::exists(name_) && !replace)
    throw std::runtime_error(name_.string() +
                             " exists already; choose another name or pass --force.");
  if (name_.has_parent_path()) fs::create_directories(name_.parent_path());
  fd_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("create it");
}

new_file::~new_file() {
  if (fd_ >= 0) ::close(fd_);
  if (!named_) ::unlink(partial_.c_str());
}

void new_file::fail(const char* doing) const {
  const int cause = errno;
  std::string text = name_.string() + ": cannot " + doing + " after " + std::to_string(written_) +
                     " bytes: " + std::strerror(cause) + ".";
  if (cause == ENOSPC || cause == EDQUOT || cause == EFBIG) {
    std::error_code unknown;
    const auto space = fs::space(partial_, unknown);
    if (!unknown) text += " That disk has " + std::to_string(space.available >> 20) + " MiB free.";
    text += " Make room and start again; nothing was left behind.";
  }
  throw std::runtime_error(text);
}

void new_file::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write");
    written_ += static_cast<std::uint64_t>(n);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void new_file::write(std::span<const float> values) {
  write(std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
}

void new_file::seal() {
  if (fd_ < 0) return;
  if (::fsync(fd_) != 0) fail("sync");
  if (::close(std::exchange(fd_, -1)) != 0) fail("close");
}

void new_file::finish() {
  seal();
  std::error_code error;
  fs::rename(partial_, name_, error);
  if (error)
    throw std::runtime_error(partial_.string() + ": cannot rename it: " + error.message() + ".");
  named_ = true;
}

}  // namespace poseidon
