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

int wait_for(int descriptor, short event, std::chrono::steady_clock::time_point deadline,
             const wake_up* stop) {
  using clock = std::chrono::steady_clock;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
    pollfd p[2] = {{descriptor, event, 0}, {stop != nullptr ? stop->descriptor() : -1, POLLIN, 0}};
    const int rc = ::poll(p, 2, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (rc > 0) return p[1].revents != 0 ? ECANCELED : 0;
    if (rc == 0 && clock::now() >= deadline) return ETIMEDOUT;
    if (rc < 0 && errno != EINTR) return 0;  // the call that follows says what is wrong
  }
}

}  // namespace poseidon
