// apps/terminal/screen.hpp
//
// What a program says on standard output and standard error, with some lines at the bottom of the terminal that are
// drawn anew in place, five times a second at most, also while nobody says anything. A line that is said goes above
// them. Where there is no terminal, lines are written at once and nothing is drawn.
//
// With a terminal a thread of its own writes everything: whoever says a line does not wait for a slow ssh or for
// somebody who has pressed Ctrl-S. It sleeps between two drawings. It changes nothing of the terminal's state (the cursor
// is never hidden, echo stays on), so that there is nothing to be put right after a crash.
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
  /// The lines to be drawn now, for so many columns. Called by the screen's thread, with no lock held.
  using painter = std::function<std::vector<styled_line>(std::size_t columns)>;

  /// With a terminal it blocks SIGCONT in the calling thread, and so in all that are begun after it: the screen's thread
  /// asks for it itself, because after a stop (Ctrl-Z) the cursor is where the shell has left it.
  screen(std::optional<terminal> live, painter paint);
  ~screen();  ///< close()
  screen(const screen&) = delete;
  screen& operator=(const screen&) = delete;

  /// Any thread. `text` has no end of line; on a terminal what could move its cursor is "?".
  void out(const std::string& text);
  void err(const std::string& text);
  /// Writes what has been said and takes the live lines away. What is said later is written at once. Not from `paint`.
  void close();

  [[nodiscard]] bool live() const { return live_.has_value(); }
  /// The live lines go where standard output does, so that nothing else is wanted there but results.
  [[nodiscard]] bool draws_on_out() const { return live_ && live_->fd == 1; }

  /// Before an end that runs no destructor: the prompt begins on a line of its own. Waits for nobody.
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

  // Of the thread.
  std::vector<styled_line> shown_;
  std::string shown_text_;
  std::size_t shown_columns_ = 0;
  std::atomic<bool> any_shown_{false};
  std::thread thread_;
};

}  // namespace poseidon::app
