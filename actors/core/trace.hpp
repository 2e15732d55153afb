// actors/core/trace.hpp
//
// What happened when: spans of one node, kept in memory, written as Chrome trace JSON (Perfetto opens it), and read by
// actors/telemetry/activity.hpp while the run is watched. Every lane has one writer at a time, so recording takes no lock:
// two clock readings and a store.
#pragma once
#include "actors/core/span_phase.hpp"
#include "messages/ids.hpp"
#include "models/json.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

/// Monotonic time, the same for all processes of a machine.
[[nodiscard]] std::int64_t now_ns();

struct trace_span {
  std::string_view name;  ///< a layer; lives as long as the log (trace_log::keep)
  span_phase phase = span_phase::other;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t clock = 0;
  std::int64_t chunk = -1;  ///< -1: not about a chunk
  std::uint64_t bytes = 0;
};

/// One row of the trace. Readers may look while the writer writes.
class trace_lane {
 public:
  /// `kept`: the lane keeps all spans for for_each(). Otherwise it forgets those that take_new() has returned.
  trace_lane(std::string name, bool kept);
  ~trace_lane();
  trace_lane(const trace_lane&) = delete;
  trace_lane& operator=(const trace_lane&) = delete;

  void record(const trace_span& span);
  /// A writer records nothing more. If it was the only one, and nothing is kept, the lane gives its memory back when all spans have been
  /// taken. As begin_again(): not beside a reader.
  void end() { --writers_; }
  /// Another writer begins, which the one before it may not know.
  void begin_again();
  [[nodiscard]] const std::string& name() const { return name_; }
  template <class F>
  void for_each(F&& f) const {
    for (const auto* b = first_; b != nullptr; b = b->next.load(std::memory_order_acquire)) {
      const auto n = b->used.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < n; ++i) f(b->spans[i]);
    }
  }
  /// f(span) for each new span since the last call. One reader at a time.
  template <class F>
  void take_new(F&& f) {
    take_written(f);
    if (writers_ == 0 && !kept_) free_blocks();
  }

 private:
  template <class F>
  void take_written(F& f) {
    while (reading_ != nullptr) {
      const auto n = reading_->used.load(std::memory_order_acquire);
      for (; taken_ < n; ++taken_) f(reading_->spans[taken_]);
      auto* next = reading_->next.load(std::memory_order_acquire);
      // A block that has a next one is full, and the writer has left it.
      if (taken_ < block_spans || next == nullptr) return;
      if (!kept_) {
        delete reading_;
        first_ = next;
      }
      reading_ = next;
      taken_ = 0;
    }
  }
  void free_blocks();

  static constexpr std::size_t block_spans = 512;
  struct block {
    std::atomic<std::size_t> used{0};
    std::atomic<block*> next{nullptr};
    trace_span spans[block_spans];
  };
  std::string name_;
  bool kept_;
  std::size_t writers_ = 1;
  block* first_;    // null: there is no writer, and all has been taken
  block* last_;     // where the writer writes
  block* reading_;  // where take_new() reads
  std::size_t taken_ = 0;
};

/// All lanes of a node. While the log is neither kept nor watched, lane() returns null and callers record nothing.
class trace_log {
 public:
  /// `kept`: all spans stay for write(). `watched`: a reader calls take_new() again and again.
  explicit trace_log(bool kept, bool watched = false) : kept_(kept), enabled_(kept || watched) {}
  [[nodiscard]] bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  /// From now on a reader calls take_new() again and again. Called before the recording actors are spawned.
  void watch() { enabled_.store(true, std::memory_order_relaxed); }

  /// The lane of that name, or null when tracing is off. Lives as long as the log. Its writer before has ended.
  [[nodiscard]] trace_lane* lane(std::string name);
  /// Its writer has ended; there may be another one later. Nothing where `lane` is null.
  void end_lane(trace_lane* lane);
  /// A lane for a writer that starts before it is known whether tracing is on: it asks enabled() before it records.
  [[nodiscard]] trace_lane* early_lane(std::string name);

  /// f(lane's place, lane's name, span) for all spans since the last call. One reader at a time.
  template <class F>
  void take_new(F&& f) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < lanes_.size(); ++i)
      lanes_[i]->take_new([&](const trace_span& s) { f(i, lanes_[i]->name(), s); });
  }

  /// A copy of `text` that lives as long as the log.
  [[nodiscard]] std::string_view keep(std::string text);

  /// Chrome trace JSON; pid is the worker, one tid per lane. "communication" has for each layer how long its updates were
  /// under way and for how much of that time streams were idle. `recording`: JSON that becomes the member "poseidon",
  /// which trace viewers skip; empty: none.
  void write(const json_stream::writer& write, seat_id self,
             const std::string& recording = {}) const;

 private:
  struct communication {
    std::uint64_t clocks = 0;
    /// From the gradient handed over until the parameters were fresh, summed over all clocks.
    std::int64_t exchange_ns = 0;
    std::int64_t exposed_ns = 0;  ///< how long streams waited for that; the mean of the streams
  };
  /// By layer. Called with the lock held.
  [[nodiscard]] std::map<std::string_view, communication> communication_of_layers() const;

  bool kept_;
  std::atomic<bool> enabled_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<trace_lane>> lanes_;
  std::set<std::string, std::less<>> texts_;  // whose nodes stay where they are
};

}  // namespace poseidon
