#include "models/files/atomic_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

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

/// A new file beside the target, removed at the end of the scope unless it is given its final name.
class temporary_file {
 public:
  explicit temporary_file(const fs::path& target) {
    for (int attempt = 0; fd_ < 0 && (attempt == 0 || (errno == EEXIST && attempt < 100));
         ++attempt) {
      std::string name(1, '.');  // hidden, so that it is not taken for a snapshot
      name += target.filename().string() + "." + std::to_string(::getpid()) + "." +
              std::to_string(attempt) + ".tmp";
      path_ = target.parent_path() / name;
      fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (fd_ < 0) fail_to_write(target, "cannot be written", errno);
  }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  ~temporary_file() {
    (void)close();
    if (!kept_) ::unlink(path_.c_str());
  }
  [[nodiscard]] int fd() const { return fd_; }

  /// close() too can be where a disk says that it is full.
  [[nodiscard]] bool close() {
    const int fd = fd_;
    fd_ = -1;
    return fd < 0 || ::close(fd) == 0;
  }
  [[nodiscard]] bool rename_to(const fs::path& target) {
    kept_ = ::rename(path_.c_str(), target.c_str()) == 0;
    return kept_;
  }

 private:
  fs::path path_;
  int fd_ = -1;
  bool kept_ = false;
};

/// The new name survives a power cut only once its folder is on the disk.
void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)::fsync(fd);
  ::close(fd);
}

}  // namespace

void write_atomically(const fs::path& path, const std::function<int(int)>& fill) {
  temporary_file temporary(path);
  if (const int error = fill(temporary.fd()); error != 0)
    fail_to_write(path, "writing failed", error);
  if (::fsync(temporary.fd()) != 0) fail_to_write(path, "syncing failed", errno);
  if (!temporary.close()) fail_to_write(path, "closing failed", errno);
  if (!temporary.rename_to(path)) fail_to_write(path, "cannot be replaced", errno);
  sync_folder(path.parent_path());
}

void write_atomically(const fs::path& path, std::span<const char> bytes) {
  write_atomically(path, [bytes](int fd) mutable {
    while (!bytes.empty()) {
      const auto written = ::write(fd, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return written < 0 ? errno : EIO;
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return 0;
  });
}

}  // namespace poseidon
