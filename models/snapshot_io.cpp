#include "models/snapshot_io.hpp"

#include "models/snapshot.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <limits>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace poseidon {

namespace pb = google::protobuf;
namespace fs = std::filesystem;

namespace {

/// Closes at the end of the scope; -1 is nothing.
class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

/// Reads only the outermost tags and lengths.
/// Returns  the size that a whole file would have had at least, if it ends inside a field; else
/// nothing.
std::optional<std::uint64_t> size_if_cut_short(const fs::path& path, std::uint64_t size) {
  const descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return std::nullopt;
  pb::io::FileInputStream file(fd.get());
  pb::io::CodedInputStream in(&file);
  in.SetTotalBytesLimit(std::numeric_limits<int>::max());
  while (const auto tag = in.ReadTag()) {
    std::uint32_t length = 0;
    std::uint64_t ignored = 0;
    const auto here = [&] { return static_cast<std::uint64_t>(in.CurrentPosition()); };
    switch (tag & 7) {
      case 0:
        if (!in.ReadVarint64(&ignored)) return size + 1;
        break;
      case 1:
        if (here() + 8 > size) return here() + 8;
        if (!in.Skip(8)) return std::nullopt;
        break;
      case 2:
        if (!in.ReadVarint32(&length)) return size + 1;
        if (here() + length > size) return here() + length;
        if (!in.Skip(static_cast<int>(length))) return std::nullopt;
        break;
      case 5:
        if (here() + 4 > size) return here() + 4;
        if (!in.Skip(4)) return std::nullopt;
        break;
      default:
        return std::nullopt;  // no protobuf at all
    }
  }
  return std::nullopt;
}

std::string bytes(std::uint64_t n) {
  return std::to_string(n) + (n == 1 ? " byte" : " bytes");
}

bool is_hdf5(const fs::path& path) {
  static constexpr std::array<char, 8> signature{'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
  std::array<char, 8> start{};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  return start == signature;
}

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
      std::string name(1, '.');  // hidden, so that nobody takes it for a snapshot
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
  const descriptor fd(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() >= 0) (void)::fsync(fd.get());
}

}  // namespace

void read_message(const fs::path& path, const std::string& what, pb::Message& message) {
  const spec_position where{path.string(), 0};
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw spec_error(where, errno == ENOENT ? "there is no such file of " + what + "."
                                            : std::string(std::strerror(errno)) + ".");
  if (S_ISDIR(status.st_mode))
    throw spec_error(where, "this is a folder, not a file of " + what + ".");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size == 0)
    throw spec_error(where, "the file is empty, it should hold " + what + ". Was its disk full?");
  if (is_hdf5(path))
    throw spec_error(
        where,
        "this is HDF5, which is not read yet. Have Caffe write snapshot_format: BINARYPROTO.");
  const descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) throw spec_error(where, std::string(std::strerror(errno)) + ".");
  pb::io::FileInputStream file(fd.get());
  pb::io::CodedInputStream in(&file);
  in.SetTotalBytesLimit(std::numeric_limits<int>::max());
  if (message.ParseFromCodedStream(&in) && in.ConsumedEntireMessage()) return;
  if (const auto needed = size_if_cut_short(path, size))
    throw spec_error(where, "the file is cut short: it has " + bytes(size) +
                                " and needs at least " + bytes(*needed) +
                                ". Copy it again, or use an older snapshot.");
  throw spec_error(where, "its " + bytes(size) + " are no " + what + " of Caffe's (" +
                              message.GetDescriptor()->name() + "), or they are damaged.");
}

void write_atomically(const fs::path& path, const pb::Message& message) {
  const auto size = message.ByteSizeLong();
  if (size > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw std::runtime_error(path.string() + ": " + bytes(size) +
                             " are more than the 2 GiB of a protobuf message.");
  temporary_file temporary(path);
  {
    pb::io::FileOutputStream out(temporary.fd());
    if (!message.SerializeToZeroCopyStream(&out) || !out.Flush())
      fail_to_write(path, "writing " + bytes(size) + " failed",
                    out.GetErrno() != 0 ? out.GetErrno() : EIO);
  }
  if (::fsync(temporary.fd()) != 0) fail_to_write(path, "syncing failed", errno);
  if (!temporary.close()) fail_to_write(path, "closing failed", errno);
  if (!temporary.rename_to(path)) fail_to_write(path, "cannot be replaced", errno);
  sync_folder(path.parent_path());
}

}  // namespace poseidon
