#include "apps/data/progress.hpp"

#include <cstdio>
#include <unistd.h>
#include <utility>

namespace poseidon::app {

progress::progress(std::string what, std::uint64_t total)
    : what_(std::move(what)), total_(total), terminal_(::isatty(STDOUT_FILENO) == 1) {}

progress::~progress() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stdout);
  std::fflush(stdout);
}

void progress::at(std::uint64_t done) {
  if (!terminal_) return;
  constexpr std::uint64_t width = 30;
  const auto filled = total_ == 0 ? width : done * width / total_;
  std::printf("\r\033[K%s [%s%s] %llu of %llu", what_.c_str(), std::string(filled, '#').c_str(),
              std::string(width - filled, '.').c_str(), static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(total_));
  std::fflush(stdout);
  drawn_ = true;
}

void progress::done(const std::string& result) {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
  std::printf("%s%s: %s in %.1f s\n", drawn_ ? "\r\033[K" : "", what_.c_str(), result.c_str(),
              seconds.count());
  drawn_ = false;
}

}  // namespace poseidon::app
