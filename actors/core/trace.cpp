#include "actors/core/trace.hpp"

#include "models/json.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <system_error>

namespace poseidon {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

trace_lane::trace_lane(std::string name, bool kept)
    : name_(std::move(name)), kept_(kept), first_(new block), last_(first_), reading_(first_) {}

trace_lane::~trace_lane() {
  for (auto* b = first_; b != nullptr;) {
    auto* next = b->next.load();
    delete b;
    b = next;
  }
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
  for (const auto& l : lanes_)
    if (l->name() == name) return l.get();
  return lanes_.emplace_back(std::make_unique<trace_lane>(std::move(name), kept_)).get();
}

std::string_view trace_log::keep(std::string text) {
  const std::lock_guard lock(mutex_);
  return *texts_.emplace_back(std::make_unique<std::string>(std::move(text)));
}

namespace {

struct file_closer {
  void operator()(std::FILE* f) const { std::fclose(f); }
};

void write_span(std::FILE* f, const trace_span& s, unsigned pid, std::size_t tid) {
  // Begin and end are rounded each for itself, the duration from the rounded ones: rounding `dur` by
  // itself makes neighbouring slices overlap, which viewers cannot nest.
  const auto begin = s.begin_ns / 1000;
  const auto end = s.end_ns / 1000;
  std::fprintf(
      f,
      ",\n{\"ph\":\"X\",\"pid\":%u,\"tid\":%zu,\"name\":%s,\"cat\":%s,\"ts\":%lld,\"dur\":%lld,"
      "\"args\":{\"clock\":%llu",
      pid, tid, json_text(s.name).c_str(), json_text(s.phase).c_str(),
      static_cast<long long>(begin), static_cast<long long>(end - begin),
      static_cast<unsigned long long>(s.clock));
  if (s.chunk >= 0) std::fprintf(f, ",\"chunk\":%lld", static_cast<long long>(s.chunk));
  if (s.bytes > 0) std::fprintf(f, ",\"bytes\":%llu", static_cast<unsigned long long>(s.bytes));
  std::fputs("}}", f);
}

}  // namespace

std::map<std::string_view, trace_log::communication> trace_log::communication_of_layers() const {
  std::map<std::string_view, communication> out;
  std::int64_t streams = 0;
  for (const auto& lane : lanes_) {
    bool computes = false;
    lane->for_each([&](const trace_span& s) {
      const auto took = s.end_ns - s.begin_ns;
      if (s.phase == "forward") computes = true;
      if (s.phase == "stall") out[s.name].exposed_ns += took;
      if (s.phase != "exchange" && s.phase != "reconstruct") return;
      out[s.name].exchange_ns += took;
      if (s.phase == "exchange") ++out[s.name].clocks;
    });
    streams += computes ? 1 : 0;
  }
  for (auto& [layer, c] : out) c.exposed_ns /= std::max<std::int64_t>(1, streams);
  return out;
}

void trace_log::write(const std::filesystem::path& path, worker_id self,
                      const std::string& more) const {
  const auto partial = path.string() + ".partial";
  auto fail = [&](const std::string& what) {
    const auto why = std::error_code(errno, std::generic_category()).message();
    std::remove(partial.c_str());
    throw std::runtime_error("trace " + path.string() + ": " + what + ": " + why);
  };
  std::unique_ptr<std::FILE, file_closer> f(std::fopen(partial.c_str(), "w"));
  if (!f) fail("cannot create it");
  const std::lock_guard lock(mutex_);
  const auto pid = value(self);
  std::fprintf(
      f.get(),
      "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
      "{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":\"worker %u\"}}",
      pid, pid);
  for (std::size_t tid = 0; tid < lanes_.size(); ++tid) {
    std::fprintf(
        f.get(),
        ",\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%zu,\"name\":\"thread_name\",\"args\":{\"name\":%s}}",
        pid, tid, json_text(lanes_[tid]->name()).c_str());
    lanes_[tid]->for_each([&](const trace_span& s) { write_span(f.get(), s, pid, tid); });
  }
  std::fputs("\n],\n\"communication\":[", f.get());
  const char* separator = "\n";
  for (const auto& [layer, c] : communication_of_layers()) {
    std::fprintf(
        f.get(),
        "%s{\"layer\":%s,\"clocks\":%llu,\"exchange_ms\":%.3f,\"exposed_ms\":%.3f,"
        "\"hidden_ms\":%.3f}",
        separator, json_text(layer).c_str(), static_cast<unsigned long long>(c.clocks),
        static_cast<double>(c.exchange_ns) / 1e6, static_cast<double>(c.exposed_ns) / 1e6,
        static_cast<double>(std::max<std::int64_t>(0, c.exchange_ns - c.exposed_ns)) / 1e6);
    separator = ",\n";
  }
  std::fputs("\n]", f.get());
  if (!more.empty()) std::fprintf(f.get(), ",\n%s", more.c_str());
  std::fputs("}\n", f.get());
  if (std::ferror(f.get()) != 0 || std::fflush(f.get()) != 0) fail("cannot write it");
  f.reset();
  if (std::rename(partial.c_str(), path.c_str()) != 0) fail("cannot rename it into place");
}

}  // namespace poseidon
