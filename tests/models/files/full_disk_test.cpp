// A disk without space: a tmpfs of 16 kB, which a child process mounts for itself, as root or in a user namespace of its own.
// Skipped, visibly, where neither is allowed.
#include "models/files/atomic_file.hpp"
#include "tests/folder.hpp"

#include <doctest/doctest.h>

#include <exception>
#include <fcntl.h>
#include <functional>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace poseidon;
namespace fs = std::filesystem;

namespace {

constexpr int may_not_mount = 77;

bool write_to(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool ok = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  return ok;
}

/// Mounts of its own, which end with this process: as the machine's root, or as the root of a user namespace.
bool enter_own_mounts() {
  if (::unshare(CLONE_NEWNS) == 0) return true;
  const auto user = std::to_string(::geteuid()), group = std::to_string(::getegid());
  return ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_to("/proc/self/setgroups", "deny") &&
         write_to("/proc/self/uid_map", "0 " + user + " 1") &&
         write_to("/proc/self/gid_map", "0 " + group + " 1");
}

struct outcome {
  int exit_code;
  std::string said;
};

/// What `act` says in a child process whose `folder` has room for 16 kB.
outcome on_a_small_disk(const fs::path& folder, const std::function<std::string()>& act) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const auto child = ::fork();
  if (child < 0) throw std::runtime_error("no child process");
  if (child == 0) {
    const bool mounted = enter_own_mounts() &&
                         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=16k") == 0;
    if (!mounted) ::_exit(may_not_mount);
    const auto text = act();
    const auto written = ::write(ends[1], text.data(), text.size());
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  outcome out{};
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    out.said.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  out.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

bool cannot_mount() {
  try {
    const test::temporary_folder folder;
    return on_a_small_disk(folder.path(), [] { return std::string(); }).exit_code == may_not_mount;
  } catch (const std::exception&) {
    return false;  // then the test fails, and says why
  }
}

}  // namespace

TEST_CASE("write_atomically: a full disk says that it is full, and nothing is left on it" *
          doctest::skip(cannot_mount())) {
  const test::temporary_folder folder;
  const auto out = on_a_small_disk(folder.path(), [&] {
    std::string said;
    try {
      write_atomically(folder.path() / "w", std::vector<char>(64 << 10));
    } catch (const std::exception& e) {
      said = e.what();
    }
    for (const auto& left : fs::directory_iterator(folder.path()))
      said += "\nleft: " + left.path().string();
    return said;
  });
  CHECK(out.exit_code == 0);
  CHECK(out.said.find("No space left on device. Free some space, or write to another disk.") !=
        std::string::npos);
  CHECK(out.said.find("left: ") == std::string::npos);
}
