#include "messages/wire/wake_up.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace poseidon {

wake_up::wake_up() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (fd_ < 0)
    throw socket_error(std::string("cannot make an event descriptor: ") + std::strerror(errno),
                       errno);
}

wake_up::~wake_up() {
  ::close(fd_);
}

void wake_up::set() noexcept {
  ::eventfd_write(fd_, 1);
}

void wake_up::clear() noexcept {
  eventfd_t ignored = 0;
  ::eventfd_read(fd_, &ignored);
}

bool wake_up::wait(std::chrono::milliseconds limit) const noexcept {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd p{fd_, POLLIN, 0};
    const int rc = ::poll(&p, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (rc >= 0 || errno != EINTR) return rc > 0;
  }
}

}  // namespace poseidon
