// apps/node/signals.hpp - SIGINT, SIGTERM and SIGHUP as messages.
#pragma once
#include <csignal>
#include <functional>
#include <thread>
#include <unistd.h>

namespace poseidon::app {

/// Until there is a signal_thread, SIGINT and SIGTERM end the process with a word: nothing has begun yet.
inline void end_early_with_a_word() {
  for (const int s : {SIGINT, SIGTERM}) {
    const auto say = [](int signal) {
      constexpr char text[] = "ended by a signal before the run began\n";
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, sizeof text - 1);
      _exit(128 + signal);
    };
    if (std::signal(s, say) == SIG_IGN) std::signal(s, SIG_IGN);  // as nohup and shells want it
  }
}

/// For verbs that have no signal_thread: signals end them as any program.
inline void end_as_any_program() {
  for (const int s : {SIGINT, SIGTERM})
    if (std::signal(s, SIG_DFL) == SIG_IGN) std::signal(s, SIG_IGN);
}

/// Waits for signals in its own thread and reports them; the second one that is to end the run ends the process immediately.
/// Construct it before any other thread, because threads inherit the signal mask.
class signal_thread {
 public:
  signal_thread() {
    sigemptyset(&set_);
    for (const int s : {SIGINT, SIGTERM, SIGHUP, end_signal}) sigaddset(&set_, s);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    // a limit on file sizes becomes an error of the write, like a full disk
    std::signal(SIGXFSZ, SIG_IGN);
  }
  ~signal_thread() {
    if (!thread_.joinable()) return;
    pthread_kill(thread_.native_handle(), end_signal);
    thread_.join();
  }
  signal_thread(const signal_thread&) = delete;
  signal_thread& operator=(const signal_thread&) = delete;

  /// `tell` returns whether the signal is to end the run. `before_exit` is called before the second of these ends the process,
  /// and must not wait for another thread.
  void run(std::function<bool(int)> tell, std::function<void()> before_exit) {
    thread_ = std::thread([this, tell = std::move(tell), before_exit = std::move(before_exit)] {
      for (bool ends = false;;) {
        int signal = 0;
        sigwait(&set_, &signal);
        if (signal == end_signal) return;
        if (ends && signal != SIGHUP) {
          before_exit();
          _exit(128 + signal);
        }
        ends = tell(signal) || ends;
      }
    });
  }

 private:
  static constexpr int end_signal = SIGUSR1;
  sigset_t set_{};
  std::thread thread_;
};

}  // namespace poseidon::app
