#include "apps/terminal/screen.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace poseidon::app {

namespace {

constexpr std::chrono::milliseconds between_drawings{200};
// Lines that follow more quickly are written together, so that the live lines below do not flicker.
constexpr std::chrono::milliseconds between_lines{40};
// Leaves room behind the last line for the "^C" that a terminal shows, which would otherwise wrap to a new line.
constexpr std::size_t room_for_echo = 2;

std::size_t rows_of(std::size_t columns_taken, std::size_t columns) {
  return std::max<std::size_t>(1, (columns_taken + columns - 1) / columns);
}

sigset_t set_of(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}

/// Whether SIGCONT has arrived since the last call. Polled, because a thread that waits for the signal might run only
/// after the next drawing.
bool was_stopped() {
  const auto blocked = set_of(SIGCONT);
  const timespec at_once{};
  return sigtimedwait(&blocked, nullptr, &at_once) == SIGCONT;
}

}  // namespace

screen::screen(std::optional<terminal> live, painter paint)
    : live_(live),
      paint_(std::move(paint)),
      out_is_tty_(::isatty(STDOUT_FILENO) == 1),
      err_is_tty_(::isatty(STDERR_FILENO) == 1) {
  if (!live_) return;
  const auto blocked = set_of(SIGCONT);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  thread_ = std::thread([this] { run(); });
}

screen::~screen() {
  close();
}

void screen::out(const std::string& text) {
  say({false, (out_is_tty_ ? printable(text) : text) + "\n"});
}

void screen::err(const std::string& text) {
  say({true, (err_is_tty_ ? printable(text) : text) + "\n"});
}

void screen::say(said s) {
  const std::lock_guard lock(mutex_);
  if (!live_ || closed_) return write(s.error, s.text);
  queue_.push_back(std::move(s));
  wake_.notify_one();
}

void screen::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void screen::abandon() noexcept {
  if (!any_shown_.load() || !in_foreground(*live_)) return;
  pollfd room{live_->fd, POLLOUT, 0};
  if (::poll(&room, 1, 0) != 1) return;  // the terminal accepts no output (Ctrl-S)
  [[maybe_unused]] const auto n = ::write(live_->fd, "\n", 1);
}

void screen::run() {
  auto next = std::chrono::steady_clock::now() + between_drawings;
  auto earliest = next - between_drawings;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait_until(lock, next, [this] { return closing_ || !queue_.empty(); });
    wake_.wait_until(lock, earliest, [this] { return closing_; });
    const bool last = closing_;
    const auto lines = std::exchange(queue_, {});
    lock.unlock();
    if (last) paint_ = {};
    const auto now = std::chrono::steady_clock::now();
    earliest = now + between_lines;
    const bool due = now >= next || last;
    draw(lines, due);
    if (due) next = now + between_drawings;
    lock.lock();
    if (last && queue_.empty()) {
      closed_ = true;
      return;
    }
  }
}

std::vector<styled_line> screen::painted(const terminal_size& size) const {
  if (!paint_) return {};
  const auto columns = std::max(size.columns, room_for_echo + 2) - room_for_echo - 1;
  auto lines = paint_(columns);
  // Lines that have scrolled off the screen could not be overwritten.
  if (lines.size() >= size.rows) lines.resize(std::max<std::size_t>(size.rows, 2) - 1);
  for (auto& line : lines) {
    for (auto& part : line) part.text = printable(part.text);
    line = cut(line, columns);
  }
  return lines;
}

/// Moves the cursor to the first column of the first live line. A terminal that gets narrower wraps lines again, so that a
/// line may take more rows than when it was drawn.
std::string screen::to_top(std::size_t columns) const {
  std::size_t rows = 0;
  for (const auto& line : shown_) rows += rows_of(columns_of(line), columns);
  return rows > 1 ? "\r\033[" + std::to_string(rows - 1) + "A" : "\r";
}

void screen::draw(const std::vector<said>& lines, bool repaint) {
  if (was_stopped() || !in_foreground(*live_)) {
    // Another program has written lines below the drawn ones.
    shown_.clear();
    shown_text_.clear();  // any_shown_ stays: the cursor may still be behind the last live line
  }
  const bool may_draw = in_foreground(*live_);
  const auto size = size_of(*live_);
  auto wanted = shown_;
  if (repaint) wanted = may_draw ? painted(size) : std::vector<styled_line>{};
  std::string text;
  for (const auto& line : wanted)
    text += (text.empty() ? "" : "\033[K\n") + sent(line, live_->colour);
  const bool same = text == shown_text_ && size.columns == shown_columns_;
  if (lines.empty() && same) return;

  const bool live_is_error = live_->fd == STDERR_FILENO;
  std::string bytes = shown_.empty() ? "" : to_top(size.columns);
  bool cleared = shown_.empty();
  for (const auto& s : lines) {
    if (!(s.error ? err_is_tty_ : out_is_tty_)) {  // goes to a file; the live lines stay
      write(s.error, s.text);
      continue;
    }
    if (!std::exchange(cleared, true)) bytes += "\033[J";
    if (s.error != live_is_error) {
      write(live_is_error, std::exchange(bytes, {}));
      write(s.error, s.text);
    } else {
      bytes += s.text;
    }
  }
  bytes += text;
  if (!cleared || !text.empty()) bytes += "\033[J";
  if (!wanted.empty()) any_shown_ = true;  // before the write, during which abandon() may come
  write(live_is_error, bytes);
  any_shown_ = !wanted.empty();
  shown_ = std::move(wanted);
  shown_text_ = std::move(text);
  shown_columns_ = size.columns;
}

void screen::write(bool error, const std::string& bytes) {
  if (bytes.empty()) return;
  auto* stream = error ? stderr : stdout;
  if (error) std::fflush(stdout);  // keeps the order of the two streams
  std::fwrite(bytes.data(), 1, bytes.size(), stream);
  std::fflush(stream);
}

}  // namespace poseidon::app
