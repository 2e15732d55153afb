#include "actors/core/trace.hpp"

#include "actors/core/trace_json.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace poseidon {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

trace_lane::trace_lane(std::string name, bool kept)
    : name_(std::move(name)), kept_(kept), first_(new block), last_(first_), reading_(first_) {}

trace_lane::~trace_lane() {
  free_blocks();
}

void trace_lane::free_blocks() {
  for (auto* b = first_; b != nullptr;) {
    auto* next = b->next.load();
    delete b;
    b = next;
  }
  first_ = last_ = reading_ = nullptr;
}

void trace_lane::begin_again() {
  ++writers_;
  if (first_ != nullptr) return;
  first_ = last_ = reading_ = new block;
  taken_ = 0;
}

void trace_lane::record(const trace_span& span) {
  auto used = last_->used.load(std::memory_order_relaxed);
  if (used == block_spans) {
    auto* fresh = new block;
    last_->next.store(fresh, std::memory_order_release);
    last_ = fresh;
    used = 0;
  }
  last_->spans[used] = span;
  last_->used.store(used + 1, std::memory_order_release);
}

trace_lane* trace_log::lane(std::string name) {
  return enabled() ? early_lane(std::move(name)) : nullptr;
}

trace_lane* trace_log::early_lane(std::string name) {
  const std::lock_guard lock(mutex_);
  for (const auto& l : lanes_) {
    if (l->name() != name) continue;
    l->begin_again();
    return l.get();
  }
  return lanes_.emplace_back(std::make_unique<trace_lane>(std::move(name), kept_)).get();
}

void trace_log::end_lane(trace_lane* lane) {
  const std::lock_guard lock(mutex_);
  if (lane != nullptr) lane->end();
}

std::string_view trace_log::keep(std::string text) {
  const std::lock_guard lock(mutex_);
  return *texts_.insert(std::move(text)).first;  // each view asks for the same names again
}

namespace {

/// To three digits behind the point.
double rounded_ms(std::int64_t ns) {
  return std::round(static_cast<double>(ns) / 1e3) / 1e3;
}

}  // namespace

std::map<std::string_view, trace_log::communication> trace_log::communication_of_layers() const {
  std::map<std::string_view, communication> out;
  std::int64_t streams = 0;
  for (const auto& lane : lanes_) {
    bool computes = false;
    lane->for_each([&](const trace_span& s) {
      const auto took = s.end_ns - s.begin_ns;
      if (s.phase == span_phase::forward) computes = true;
      if (s.phase == span_phase::stall) out[s.name].exposed_ns += took;
      if (s.phase != span_phase::exchange && s.phase != span_phase::reconstruct) return;
      out[s.name].exchange_ns += took;
      if (s.phase == span_phase::exchange) ++out[s.name].clocks;
    });
    streams += computes ? 1 : 0;
  }
  for (auto& [layer, c] : out) c.exposed_ns /= std::max<std::int64_t>(1, streams);
  return out;
}

void trace_log::write(const json_stream::writer& write, seat_id self,
                      const std::string& recording) const {
  const std::lock_guard lock(mutex_);
  const auto worker = value(self);
  json_stream out(write);
  out.put("displayTimeUnit", "ms");
  out.list("traceEvents", [&](auto put) {
    put(trace_name_json(worker, std::nullopt, "worker " + std::to_string(worker)));
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      put(trace_name_json(worker, lane, lanes_[lane]->name()));
      lanes_[lane]->for_each([&](const trace_span& s) { put(trace_span_json(s, worker, lane)); });
    }
  });
  out.list("communication", [&](auto put) {
    for (const auto& [layer, c] : communication_of_layers()) {
      json_object row;
      row.put("layer", layer).put("clocks", c.clocks);
      row.put("exchange_ms", rounded_ms(c.exchange_ns));
      row.put("exposed_ms", rounded_ms(c.exposed_ns));
      const auto hidden = std::max<std::int64_t>(0, c.exchange_ns - c.exposed_ns);
      put(row.put("hidden_ms", rounded_ms(hidden)));
    }
  });
  if (!recording.empty()) out.put("poseidon", json_value{recording});
  out.finish();
}

}  // namespace poseidon
