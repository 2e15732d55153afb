#include "actors/node/run_node.hpp"

#include "actors/links/link_options.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <unistd.h>

namespace poseidon {

namespace {

constexpr std::chrono::seconds failure_patience{2};

/// The signal thread may outlive the node: it gets an address that is emptied, not a reference.
struct address {
  std::mutex mutex;
  node_host* to = nullptr;
};

/// The actor system's destructor waits for every actor; one that hangs, or that could not be spawned whole because there was
/// no memory for its thread, must not hang the process for ever. Made before anything can fail.
class end_watchdog {
 public:
  end_watchdog() : thread_([this] { run(); }) {}
  ~end_watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  end_watchdog(const end_watchdog&) = delete;
  end_watchdog& operator=(const end_watchdog&) = delete;

  /// From now on the process has so long to end; then it exits with `exit_code`, after `error` if there is one.
  void count_down(std::chrono::milliseconds patience, int exit_code, const char* error = "") {
    {
      const std::lock_guard lock(mutex_);
      patience_ = patience;
      exit_code_ = exit_code;
      std::snprintf(error_, sizeof error_, "%s", error);
    }
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_ || patience_.count() > 0; });
    if (over_ || changed_.wait_for(lock, patience_, [this] { return over_; })) return;
    if (error_[0] != 0)
      std::fprintf(stderr, "error: %s\n", error_);
    else
      std::fprintf(stderr,
                   "internal error: actors still run %s after the end; giving up on them.\n",
                   seconds_text(patience_).c_str());
    _exit(exit_code_);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::milliseconds patience_{0};
  int exit_code_ = 1;
  char error_[1024] = {};  // there may be no memory when it is needed
  bool over_ = false;
  std::thread thread_;
};

}  // namespace

std::chrono::milliseconds patience_at_end(const node_setup& setup) {
  const auto link_waits = std::max(link_options{}.stall_limit, setup.cluster.silence_limit);
  return link_waits + std::chrono::seconds{10};
}

node_result run_node(node_setup setup, const signal_hook& signals) {
  end_watchdog watchdog;
  const auto patience = patience_at_end(setup);
  node_result result;  // before the host: what it holds outlives the last actor
  node_host host;
  try {
    host.start(std::move(setup));
    const auto reachable = std::make_shared<address>();
    reachable->to = &host;
    if (signals)
      signals([reachable](interrupted what) {
        const std::lock_guard lock(reachable->mutex);
        if (reachable->to != nullptr) reachable->to->tell(what);
      });
    result = host.ended();
    {
      const std::lock_guard lock(reachable->mutex);
      reachable->to = nullptr;
    }
    watchdog.count_down(patience, result.exit_code != 0 ? result.exit_code : 1,
                        result.error.c_str());
  } catch (const std::exception& e) {
    std::string words;
    try {
      words = in_words(e.what());
    } catch (const std::bad_alloc&) {
      // Then in the words of who threw it.
    }
    watchdog.count_down(failure_patience, 1, words.empty() ? e.what() : words.c_str());
    throw;  // through the host's destructor, while the watchdog counts
  }
  return result;
}

}  // namespace poseidon
