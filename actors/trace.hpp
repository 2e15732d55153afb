// actors/trace.hpp
//
// What happened when: spans of one node, kept in memory, written as Chrome trace JSON (Perfetto opens it).
// Every lane has one writer at a time, so recording takes no lock: two clock readings and a store.
#pragma once
#include "messages/ids.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

/// Monotonic, the same for all processes of a machine.
[[nodiscard]] std::int64_t now_ns();

struct trace_span {
  std::string_view name;   ///< a layer; lives as long as the log (trace_log::keep)
  std::string_view phase;  ///< forward backward push apply pull stall ...
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t clock = 0;
  std::int64_t chunk = -1;  ///< -1: not about a chunk
  std::uint64_t bytes = 0;
};

/// One row of the trace. The reader may look while the writer writes.
class trace_lane {
 public:
  explicit trace_lane(std::string name) : name_(std::move(name)) {}
  ~trace_lane();
  trace_lane(const trace_lane&) = delete;
  trace_lane& operator=(const trace_lane&) = delete;

  void record(const trace_span& span);
  [[nodiscard]] const std::string& name() const { return name_; }
  template <class F>
  void for_each(F&& f) const {
    for (const auto* b = &first_; b != nullptr; b = b->next.load(std::memory_order_acquire)) {
      const auto n = b->used.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < n; ++i) f(b->spans[i]);
    }
  }

 private:
  struct block {
    std::atomic<std::size_t> used{0};
    std::atomic<block*> next{nullptr};
    trace_span spans[512];
  };
  std::string name_;
  block first_;
  block* last_ = &first_;
};

/// All lanes of a node. Without a file nothing is recorded: lane() answers null and callers skip.
class trace_log {
 public:
  explicit trace_log(bool enabled) : enabled_(enabled) {}
  [[nodiscard]] bool enabled() const { return enabled_; }

  /// A new lane, or null when tracing is off. Lives as long as the log.
  [[nodiscard]] trace_lane* lane(std::string name);

  /// A copy of `text` that lives as long as the log.
  [[nodiscard]] std::string_view keep(std::string text);

  /// Chrome trace JSON; pid is the worker, one tid per lane. "communication" has for each layer how long its updates were
  /// under way and for how much of that streams stood still. Written aside, then renamed.
  /// Errors   std::runtime_error with path and reason.
  void write(const std::filesystem::path& path, worker_id self) const;

 private:
  struct communication {
    std::uint64_t clocks = 0;
    std::int64_t exchange_ns =
        0;  ///< from the gradient handed over until the parameters were fresh, over all clocks
    std::int64_t exposed_ns = 0;  ///< streams stood still for it; their mean
  };
  /// By layer. Called with the lock held.
  [[nodiscard]] std::map<std::string_view, communication> communication_of_layers() const;

  bool enabled_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<trace_lane>> lanes_;
  std::vector<std::unique_ptr<std::string>> texts_;
};

}  // namespace poseidon
