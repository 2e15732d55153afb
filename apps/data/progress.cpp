#include "apps/data/progress.hpp"

#include <cstdio>
#include <utility>

namespace poseidon::app {

progress::progress(reporter& out, std::string command, std::string target, std::uint64_t total)
    : out_(out), command_(std::move(command)), target_(std::move(target)) {
  shown_ = out_.working({command_ + " " + target_, total, [this] { return done_.load(); }});
}

void progress::done(const std::string& result, json_event more) {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin_;
  shown_.reset();
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f s", took.count());
  out_.remark(command_ + " " + target_ + ": " + result + " in " + seconds);
  json_event e("result");
  e.text("command", command_).text("path", target_).number("seconds", took.count());
  out_.event(e.add(more));
}

}  // namespace poseidon::app
