// apps/terminal/screen.hpp
//
// A program's output on standard output and standard error, with some live lines at the bottom of the terminal, which are
// redrawn in place at most five times a second. Other lines are written above them. Without a terminal, lines are written
// immediately and no live lines are drawn.
//
// With a terminal, one thread writes everything, so that the caller does not wait for a slow ssh or after Ctrl-S. The
// thread sleeps between two drawings. It does not change the terminal's state (the cursor is never hidden, echo stays on),
// so that a crash leaves the terminal usable.
#pragma once
#include "apps/terminal/terminal.hpp"
#include "apps/terminal/text.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace poseidon::app {

class screen {
 public:
  /// Returns the lines to draw, for the given number of columns. Called by the screen's thread without a lock.
  using painter = std::function<std::vector<styled_line>(std::size_t columns)>;

  /// With a terminal, blocks SIGCONT in the calling thread and in all threads that it starts later: the screen's thread
  /// polls for the signal, because after a stop (Ctrl-Z) the cursor is where the shell has left it.
  screen(std::optional<terminal> live, painter paint);
  ~screen();  ///< close()
  screen(const screen&) = delete;
  screen& operator=(const screen&) = delete;

  /// Any thread. `text` has no end of line; on a terminal, characters that could move its cursor become "?".
  void out(const std::string& text);
  void err(const std::string& text);
  /// Writes all waiting lines and removes the live lines. Later lines are written immediately. Do not call it from `paint`.
  void close();

  [[nodiscard]] bool live() const { return live_.has_value(); }
  /// Whether the live lines are drawn where standard output goes, which should then receive results only.
  [[nodiscard]] bool draws_on_out() const { return live_ && live_->fd == 1; }

  /// For an end that runs no destructor: lets the prompt begin on its own line. Waits for no lock.
  void abandon() noexcept;

 private:
  struct said {
    bool error;
    std::string text;
  };
  void say(said s);
  void run();
  void draw(const std::vector<said>& lines, bool repaint);
  [[nodiscard]] std::string to_top(std::size_t columns) const;
  [[nodiscard]] std::vector<styled_line> painted(const terminal_size& size) const;
  static void write(bool error, const std::string& bytes);

  std::optional<terminal> live_;
  painter paint_;
  bool out_is_tty_, err_is_tty_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<said> queue_;
  bool closing_ = false, closed_ = false;

  // Used by the thread only.
  std::vector<styled_line> shown_;
  std::string shown_text_;
  std::size_t shown_columns_ = 0;
  std::atomic<bool> any_shown_{false};
  std::thread thread_;
};

}  // namespace poseidon::app
