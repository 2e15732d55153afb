// messages/wire/wake_up.hpp - ends a wait on the network from another thread, and what such waits fail with.
#pragma once
#include <chrono>
#include <stdexcept>
#include <string>

namespace poseidon {

/// What went wrong with a socket, as a line for the user.
struct socket_error : std::runtime_error {
  socket_error(const std::string& text, int error) : std::runtime_error(text), error(error) {}
  int error;  ///< errno
};

/// Ends waits on the network: while it is set, a wait that was given it returns. Any thread.
class wake_up {
 public:
  wake_up();  ///< Errors   socket_error: no descriptors left
  ~wake_up();
  wake_up(const wake_up&) = delete;
  wake_up& operator=(const wake_up&) = delete;

  void set() noexcept;
  void clear() noexcept;
  /// Waits until it is set, at most `limit`. Returns  whether it is set.
  [[nodiscard]] bool wait(std::chrono::milliseconds limit) const noexcept;
  [[nodiscard]] int descriptor() const { return fd_; }

 private:
  int fd_;  // an eventfd
};

/// Waits until `descriptor` is ready for `event` (POLLIN, POLLOUT), or broken.
/// Returns  0, ETIMEDOUT when `deadline` has passed, ECANCELED when `stop` (may be null) is set.
[[nodiscard]] int wait_for(int descriptor, short event,
                           std::chrono::steady_clock::time_point deadline, const wake_up* stop);

}  // namespace poseidon
