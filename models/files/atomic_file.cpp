#include "models/files/atomic_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>

namespace poseidon {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail_to_write(const fs::path& path, const std::string& what, int error) {
  std::string text = path.string() + ": " + what + ": " + std::strerror(error) + ".";
  if (error == ENOSPC || error == EDQUOT) text += " Free some space, or write to another disk.";
  if (error == EACCES || error == EROFS) text += " Choose a folder that you may write to.";
  if (error == ENOENT) text += " Make the folder first.";
  throw std::runtime_error(text + " What was there before is unchanged.");
}

void check(const fs::path& path, const char* what, int error) {
  if (error != 0) fail_to_write(path, what, error);
}

void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)::fsync(fd);
  ::close(fd);
}

}  // namespace

temporary_file::temporary_file(fs::path target) : target_(std::move(target)) {
  constexpr int attempts = 100;
  for (int attempt = 0; attempt < attempts && fd_ < 0; ++attempt) {
    std::string name(1, '.');  // hidden, so that it is not taken for a snapshot
    name += target_.filename().string() + "." + std::to_string(::getpid()) + "." +
            std::to_string(attempt) + ".tmp";
    path_ = target_.parent_path() / name;
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    open_error_ = fd_ < 0 ? errno : 0;
    if (open_error_ != EEXIST) return;
  }
}

temporary_file::temporary_file(fs::path target, fs::path beside)
    : target_(std::move(target)), path_(std::move(beside)) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  open_error_ = fd_ < 0 ? errno : 0;
}

temporary_file::~temporary_file() {
  (void)close();
  if (open_error_ == 0 && !renamed_) ::unlink(path_.c_str());
}

int temporary_file::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    written_ += static_cast<std::uint64_t>(n);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

int temporary_file::sync() {
  return ::fsync(fd_) == 0 ? 0 : errno;
}

int temporary_file::close() {
  const int fd = std::exchange(fd_, -1);
  return fd < 0 || ::close(fd) == 0 ? 0 : errno;
}

int temporary_file::rename() {
  const int error = rename_durably(path_, target_);
  renamed_ = error == 0;
  return error;
}

int rename_durably(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return errno;
  sync_folder(to.parent_path());
  return 0;
}

namespace {

template <class Fill>
void write_whole(const fs::path& path, Fill fill) {
  temporary_file file(path);
  check(path, "cannot be written", file.open_error());
  fill(file);
  check(path, "syncing failed", file.sync());
  check(path, "closing failed", file.close());
  check(path, "cannot be replaced", file.rename());
}

}  // namespace

void write_atomically(const fs::path& path, const std::function<int(int)>& fill) {
  write_whole(path, [&](temporary_file& file) { check(path, "writing failed", fill(file.fd())); });
}

void write_atomically(const fs::path& path, std::span<const char> bytes) {
  write_in_pieces(path, [&](const piece_writer& write) { write({bytes.data(), bytes.size()}); });
}

void write_in_pieces(const fs::path& path, const std::function<void(const piece_writer&)>& fill) {
  write_whole(path, [&](temporary_file& file) {
    fill([&](std::string_view bytes) { check(path, "writing failed", file.write(bytes)); });
  });
}

}  // namespace poseidon
