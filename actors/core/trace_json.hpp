// actors/core/trace_json.hpp - events of Chrome's trace format, for the trace file and for the page's export.
// Source   "Trace Event Format" of the Chromium project: complete events (X) and metadata events (M).
#pragma once
#include "actors/core/trace.hpp"
#include "models/json.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace poseidon {

/// Begin and end are rounded to microseconds, and the duration is their difference: a rounded duration would make
/// neighbouring slices overlap, and viewers cannot nest these.
[[nodiscard]] inline json_object trace_span_json(const trace_span& s, std::uint32_t worker,
                                                 std::size_t lane) {
  const auto begin = s.begin_ns / 1000;
  json_object args, out;
  args.put("clock", s.clock);
  if (s.chunk >= 0) args.put("chunk", s.chunk);
  if (s.bytes > 0) args.put("bytes", s.bytes);
  out.put("ph", "X").put("pid", worker).put("tid", lane);
  out.put("name", s.name).put("cat", to_string(s.phase));
  return out.put("ts", begin).put("dur", s.end_ns / 1000 - begin).put("args", args);
}

/// Names a process or, with `lane`, one of its threads.
[[nodiscard]] inline json_object trace_name_json(std::uint32_t worker,
                                                 std::optional<std::size_t> lane,
                                                 const std::string& name) {
  json_object out;
  out.put("ph", "M").put("pid", worker);
  if (lane) out.put("tid", *lane);
  out.put("name", lane ? "thread_name" : "process_name");
  return out.put("args", json_object().put("name", name));
}

}  // namespace poseidon
