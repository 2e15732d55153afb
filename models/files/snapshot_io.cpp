#include "models/files/snapshot_io.hpp"

#include "models/files/atomic_file.hpp"
#include "models/files/file_kind.hpp"
#include "models/files/snapshot.hpp"
#include "models/first_bytes.hpp"

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

}  // namespace

void read_message(const fs::path& path, const std::string& what, pb::Message& message) {
  const spec_position where{path.string(), 0};
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw spec_error(where, errno == ENOENT ? "there is no such file of " + what + "."
                                            : std::string(std::strerror(errno)) + ".");
  if (const auto kind = kind_if_no_file(path); !kind.empty())
    throw spec_error(where, "this is " + kind + ", not a file of " + what + ".");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size == 0)
    throw spec_error(where, "the file is empty, it should hold " + what + ". Was its disk full?");
  const descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) throw spec_error(where, std::string(std::strerror(errno)) + ".");
  pb::io::FileInputStream file(fd.get());
  pb::io::CodedInputStream in(&file);
  in.SetTotalBytesLimit(std::numeric_limits<int>::max());
  if (message.ParseFromCodedStream(&in) && in.ConsumedEntireMessage()) return;
  if (const auto pointer = lfs_pointer_at(path); !pointer.empty())
    throw spec_error(where, "this is " + pointer + ".");
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
                             " are more than the 2 GiB of a protobuf message. Use "
                             "snapshot_format: HDF5, which has no such limit.");
  write_atomically(path, [&](int fd) {
    pb::io::FileOutputStream out(fd);
    if (message.SerializeToZeroCopyStream(&out) && out.Flush()) return 0;
    return out.GetErrno() != 0 ? out.GetErrno() : EIO;
  });
}

}  // namespace poseidon
