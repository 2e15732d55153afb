#include "apps/node/console.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace poseidon::app {

namespace {

std::string number(double v, const char* format = "%.4g") {
  char text[64];
  std::snprintf(text, sizeof text, format, v);
  return text;
}

std::string duration(double seconds) {
  const auto s = static_cast<long>(seconds + 0.5);
  char text[64];
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%ldh%02ldm", s / 3600, s / 60 % 60);
  else if (s >= 60)
    std::snprintf(text, sizeof text, "%ldm%02lds", s / 60, s % 60);
  else
    std::snprintf(text, sizeof text, "%lds", s);
  return text;
}

/// UTC, so that the lines of several machines can be put in order: "07:58:03.120".
std::string time_of_day() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count() % 86'400'000;
  char text[32];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03d", static_cast<int>(ms / 3'600'000),
                static_cast<int>(ms / 60'000 % 60), static_cast<int>(ms / 1000 % 60),
                static_cast<int>(ms % 1000));
  return text;
}

bool is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && term != nullptr && std::string(term) != "dumb";
}

}  // namespace

verbosity verbosity_of(const std::string& word) {
  return word == "quiet" ? verbosity::quiet : word == "debug" ? verbosity::debug : verbosity::info;
}

console::console(verbosity level, std::size_t nodes)
    : level_(level), nodes_(nodes), terminal_(is_terminal()) {
  began_ = last_ = std::chrono::steady_clock::now();
}

console::~console() {
  if (live_shown_) std::fputs("\n", stdout);
}

void console::line(const std::string& text) {
  if (live_shown_) std::fputs("\r\033[K", stdout);
  live_shown_ = false;
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

void console::complain(const std::string& text) {
  if (live_shown_) std::fputs("\r\033[K", stdout);
  live_shown_ = false;
  std::fflush(stdout);
  std::fputs((text + "\n").c_str(), stderr);
}

void console::live(const std::string& text) {
  std::fputs(("\r\033[K" + text).c_str(), stdout);
  std::fflush(stdout);
  live_shown_ = true;
}

double console::rate(std::uint64_t images) {
  const auto now = std::chrono::steady_clock::now();
  const auto seconds = std::chrono::duration<double>(now - last_).count();
  const auto r = seconds > 0 ? static_cast<double>(images - last_images_) / seconds : 0;
  last_ = now;
  last_images_ = images;
  return r;
}

/// How much of the communication since the last line nobody had to wait for. Nothing where there is none: a node that
/// is alone updates its parameters, and that is all.
std::string console::hidden(const iteration& i) {
  const auto communication = static_cast<double>(i.communication_ns - last_communication_ns_);
  const auto exposed = static_cast<double>(i.exposed_ns - last_exposed_ns_);
  last_communication_ns_ = i.communication_ns;
  last_exposed_ns_ = i.exposed_ns;
  if (nodes_ < 2 || communication <= 0) return {};
  return " hidden " + number(100 * std::max(0.0, 1 - exposed / communication), "%.0f") + "%";
}

void console::trained(const iteration& i, const std::vector<output_value>& outputs) {
  const std::lock_guard lock(mutex_);
  if (level_ == verbosity::quiet) return;
  if (!any_) {
    any_ = true;
    began_ = std::chrono::steady_clock::now();
    first_clock_ = i.clock;
  }
  auto text = "clock " + std::to_string(i.clock) + "/" + std::to_string(i.last_clock) + ": loss " +
              number(i.loss) + " lr " + number(i.learning_rate);
  for (std::size_t o = 0; o < outputs.size() && o < i.outputs.size(); ++o)
    if (outputs[o].loss_weight == 0) text += " " + outputs[o].name + " " + number(i.outputs[o]);
  const auto images_s = rate(i.images);
  text += " images/s " + number(images_s, images_s >= 1000 ? "%.0f" : "%.3g");
  text += hidden(i);
  const auto elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  if (i.clock > first_clock_ && i.last_clock > i.clock)
    text += " left " + duration(elapsed * static_cast<double>(i.last_clock - i.clock) /
                                static_cast<double>(i.clock - first_clock_));
  terminal_ ? live(text) : line(text);
}

void console::tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
                     const std::vector<output_value>& outputs) {
  const std::lock_guard lock(mutex_);
  auto text = "test clock " + std::to_string(clock) + ":";
  if (test_net > 0)
    text = "test net " + std::to_string(test_net) + " clock " + std::to_string(clock) + ":";
  for (std::size_t o = 0; o < outputs.size() && o < means.size(); ++o)
    text += " " + outputs[o].name + " " + number(means[o], "%.6g");
  line(text);
}

void console::snapshot(std::uint64_t clock, const std::string& path, const std::string& error) {
  const std::lock_guard lock(mutex_);
  if (error.empty())
    line("snapshot " + path);
  else
    complain("snapshot of clock " + std::to_string(clock) + " failed: " + error +
             " The one before it is untouched.");
}

void console::note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (level_ != verbosity::quiet) line(text);
}

void console::detail(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (level_ == verbosity::debug) line("debug " + time_of_day() + " " + text);
}

}  // namespace poseidon::app
