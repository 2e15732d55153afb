#include "models/files/atomic_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
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

/// For remove_leftovers(). Between open and lock another process may have taken the file for a leftover.
bool locked_and_there(int fd) {
  struct stat status {};
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  return locked && (::fstat(fd, &status) != 0 || status.st_nlink > 0);
}

/// ".target.PID.N.tmp" of a target whose name begins with `begin`.
bool is_temporary(const std::string& name, const std::string& begin) {
  constexpr std::string_view end = ".tmp";
  if (!name.starts_with("." + begin) || !name.ends_with(end)) return false;
  auto rest = name.substr(0, name.size() - end.size());
  for (int number = 0; number < 2; ++number) {
    const auto digits = rest.find_last_not_of("0123456789");
    if (digits == std::string::npos || digits + 1 == rest.size() || rest[digits] != '.')
      return false;
    rest.resize(digits);
  }
  return rest.size() >= begin.size() + 1;
}

void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)::fsync(fd);
  ::close(fd);
}

}  // namespace

temporary_file::temporary_file(fs::path target) : target_(std::move(target)) {
  remove_leftovers(target_);
  constexpr int attempts = 100;
  for (int attempt = 0; attempt < attempts && fd_ < 0; ++attempt) {
    std::string name(1, '.');  // hidden, so that it is not taken for a snapshot
    name += target_.filename().string() + "." + std::to_string(::getpid()) + "." +
            std::to_string(attempt) + ".tmp";
    path_ = target_.parent_path() / name;
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    open_error_ = fd_ < 0 ? errno : 0;
    if (fd_ >= 0 && !locked_and_there(fd_)) ::close(std::exchange(fd_, -1));
    if (fd_ >= 0 || (open_error_ != 0 && open_error_ != EEXIST)) break;
  }
  if (fd_ >= 0)
    lock_ = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);  // the lock lasts until the last of the two is closed
}

temporary_file::temporary_file(fs::path target, fs::path beside)
    : target_(std::move(target)), path_(std::move(beside)) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  open_error_ = fd_ < 0 ? errno : 0;
}

void remove_leftovers(const fs::path& stem) noexcept {
  std::error_code ignored;
  const auto folder = stem.has_parent_path() ? stem.parent_path() : fs::path(".");
  try {
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (!is_temporary(entry.path().filename().string(), stem.filename().string())) continue;
      const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
      if (fd < 0) continue;
      if (::flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
      ::close(fd);
    }
  } catch (const std::exception&) {  // what cannot be read stays
  }
}

temporary_file::~temporary_file() {
  (void)close();
  if (open_error_ == 0 && !renamed_) ::unlink(path_.c_str());
  if (lock_ >= 0) ::close(lock_);
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

int link_durably(const fs::path& file, const fs::path& second_name) {
  if (::link(file.c_str(), second_name.c_str()) != 0) return errno;
  sync_folder(second_name.parent_path());
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
