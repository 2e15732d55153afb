#include "actors/links/frame_check.hpp"

#include "messages/frame_table.hpp"
#include "messages/node_report.hpp"
#include "models/device/square_sum.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace poseidon {
namespace {

wire_format format_of_chunk(chunk_id id, const link_limits& limits) {
  return limits.chunk_formats.contains(id) ? limits.chunk_formats[id] : wire_format::float32;
}

/// What a frame says of its own values; float32: it says nothing.
template <class F>
wire_format named_format(const F& f) {
  if constexpr (requires { f.step.wire; }) return f.step.wire;
  if constexpr (requires { f.format; }) return f.format;
  return wire_format::float32;
}

/// Only gradients and updates are ever reduced.
template <class F>
wire_format format_of_values(const F& f, const link_limits& limits) {
  if (const auto named = named_format(f); named != wire_format::float32) return named;
  if constexpr (std::is_same_v<F, frames::push_gradient>) return format_of_chunk(f.chunk, limits);
  if constexpr (std::is_same_v<F, frames::fresh_parameters>) return format_of(f, limits);
  return wire_format::float32;
}

void check_piece_of_history(const decoded_header& h, const frames::install_history& f,
                            std::uint32_t values) {
  const auto kind = kind_name(h.header);
  const auto of_chunk = " of chunk " + std::to_string(value(f.chunk));
  if (f.first >= values)
    throw bad_frame(kind, "first value" + of_chunk, std::to_string(f.first),
                    "less than " + std::to_string(values));
  const auto most = sizeof(float) * (values - f.first);
  if (h.payload_bytes == 0 || h.payload_bytes % sizeof(float) != 0 || h.payload_bytes > most)
    throw bad_frame(kind, "payload size" + of_chunk, std::to_string(h.payload_bytes),
                    "a multiple of 4 up to " + std::to_string(most));
}

void check_nothing(const decoded_header& h, const link_limits& limits) {
  const auto kind = kind_name(h.header);
  if (!limits.may_say_nothing)
    throw bad_frame(kind, "nothing", "set", "unset, as this run's nets always have gradients");
  if (h.payload_bytes != 0)
    throw bad_frame(kind, "payload size of nothing", std::to_string(h.payload_bytes), "0");
}

template <class F>
void check_chunk(const decoded_header& h, const F& f, const link_limits& limits) {
  const auto chunk = [&] { return std::to_string(value(f.chunk)); };
  const auto kind = kind_name(h.header);
  const auto chunks = limits.chunk_values.size();
  if (!limits.chunk_values.contains(f.chunk)) {
    throw bad_frame(kind, "chunk", chunk(),
                    chunks == 0 ? "none before this node knows the run's chunks"
                                : "at most " + std::to_string(chunks - 1));
  }
  const auto values = limits.chunk_values[f.chunk];
  if (const auto named = named_format(f); named != wire_format::float32 && !limits.names_formats)
    throw bad_frame(kind, "format of chunk " + chunk(), std::to_string(static_cast<int>(named)),
                    "0, as the view says it");
  if constexpr (requires { f.nothing; })
    if (f.nothing) return check_nothing(h, limits);
  if constexpr (std::is_same_v<F, frames::install_history>) {
    check_piece_of_history(h, f, values);
  } else if (const auto bytes = wire_bytes(format_of_values(f, limits), values);
             h.payload_bytes != bytes) {
    throw bad_frame(kind, "payload size of chunk " + chunk(), std::to_string(h.payload_bytes),
                    std::to_string(bytes));
  }
}

void check_slot(std::string_view kind, std::uint32_t slot, const link_limits& limits) {
  if (slot < limits.history_slots) return;
  throw bad_frame(kind, "slot", std::to_string(slot),
                  "less than " + std::to_string(limits.history_slots));
}

template <class F>
void check_values(const decoded_header& h, const F& f, const link_limits& limits) {
  if constexpr (requires { f.chunk; }) check_chunk(h, f, limits);
  if constexpr (requires { f.slot; }) check_slot(kind_name(h.header), f.slot, limits);
}

void check_values(const decoded_header& h, const frames::gradient_squares&,
                  const link_limits& limits) {
  if (!limits.clips)
    throw bad_frame("gradient_squares", "clip_gradients", "set", "unset, as in this run's solver");
  if (h.payload_bytes != square_sum::bytes)
    throw bad_frame("gradient_squares", "payload size", std::to_string(h.payload_bytes),
                    std::to_string(square_sum::bytes));
}

void check_values(const decoded_header& h, const frames::factors& f, const link_limits& limits) {
  const auto layer = [&] { return std::to_string(value(f.layer)); };
  const auto of_layer = [&](const char* field) {
    return std::string(field) + " of layer " + layer();
  };
  if (!limits.factors.contains(f.layer) || limits.factors[f.layer].rows == 0)
    throw bad_frame("factors", "layer", layer(), "one whose route is factor_broadcast");
  auto shape = limits.factors[f.layer];
  const std::uint32_t least = limits.may_say_nothing ? 0 : 1;
  if (f.rows < least || f.rows > shape.rows)
    throw bad_frame("factors", of_layer("rows"), std::to_string(f.rows),
                    std::to_string(least) + " to " + std::to_string(shape.rows));
  shape.rows = f.rows;
  const auto values = f.first < shape.values() ? factor_piece(shape, f.first) : 0;
  if (values == 0 && (f.rows > 0 || f.first > 0))
    throw bad_frame("factors", of_layer("first value"), std::to_string(f.first),
                    "less than " + std::to_string(shape.values()));
  if (h.payload_bytes != sizeof(float) * values)
    throw bad_frame("factors", of_layer("payload size"), std::to_string(h.payload_bytes),
                    std::to_string(sizeof(float) * values));
}

void check_values(const decoded_header& h, const frames::lowrank_factor& f,
                  const link_limits& limits) {
  const auto layer = std::to_string(value(f.layer));
  if (!limits.lowrank.contains(f.layer) || limits.lowrank[f.layer].first == 0)
    throw bad_frame("lowrank_factor", "layer", layer, "one whose route is lowrank");
  const auto& of_layer = limits.lowrank[f.layer];
  const auto bytes = f.second ? of_layer.second : of_layer.first;
  if (h.payload_bytes != bytes)
    throw bad_frame("lowrank_factor", "payload size of layer " + layer,
                    std::to_string(h.payload_bytes), std::to_string(bytes));
}

void check_values(const decoded_header& h, const frames::shared_state& f,
                  const link_limits& limits) {
  const auto entries = limits.shared.size();
  if (f.index >= entries)
    throw bad_frame("shared_state", "index", std::to_string(f.index),
                    entries == 0 ? "none, as this node takes no shared state"
                                 : "at most " + std::to_string(entries - 1));
  const auto of_entry = " of entry " + std::to_string(f.index);
  const auto size = limits.shared[f.index];
  if (f.first >= size || f.first % shared_piece_bytes != 0)
    throw bad_frame("shared_state", "first byte" + of_entry, std::to_string(f.first),
                    "a multiple of " + std::to_string(shared_piece_bytes) + " less than " +
                        std::to_string(size));
  const auto bytes = std::min<std::uint64_t>(shared_piece_bytes, size - f.first);
  if (h.payload_bytes != bytes)
    throw bad_frame("shared_state", "payload size" + of_entry, std::to_string(h.payload_bytes),
                    std::to_string(bytes));
}

void check_values(const decoded_header& h, const frames::report&, const link_limits& limits) {
  if (!limits.watches)
    throw bad_frame("report", "reader", "this node", "the first node, while it shows the run");
  if (h.payload_bytes > max_report_bytes)
    throw bad_frame("report", "payload size", std::to_string(h.payload_bytes),
                    "at most " + std::to_string(max_report_bytes));
}

/// The run's end says what is possible, once it is known.
void check_values(const decoded_header&, const frames::stop_after& f, const link_limits& limits) {
  const auto version = value(f.version);
  if (limits.end_clock == 0 || (version >= limits.first_version && version <= limits.end_clock))
    return;
  throw bad_frame("stop_after", "version", std::to_string(version),
                  std::to_string(limits.first_version) + " to " + std::to_string(limits.end_clock));
}

void check_values(const decoded_header&, const frames::worker_paused& f,
                  const link_limits& limits) {
  if (limits.end_clock > 0 && value(f.clock) > limits.end_clock)
    throw bad_frame("worker_paused", "clock", std::to_string(value(f.clock)),
                    "at most " + std::to_string(limits.end_clock));
}

void check_values(const decoded_header&, const frames::worker_report& f,
                  const link_limits& limits) {
  const auto refuse = [](const char* field, std::uint64_t got, std::uint64_t wanted) {
    throw bad_frame("worker_report", field, std::to_string(got), std::to_string(wanted));
  };
  if (limits.reports.empty())
    throw bad_frame("worker_report", "reader", "this node", "the first node, in training");
  const auto nets = static_cast<std::int64_t>(limits.reports.size());
  if (f.test_net < -1 || f.test_net + 1 >= nets)
    throw bad_frame("worker_report", "test net", std::to_string(f.test_net),
                    "-1 to " + std::to_string(nets - 2));
  // A test is one of the parameters that a clock begins with, or of those at the end.
  const auto end = limits.end_clock + (f.test_net >= 0 ? 1 : 0);
  if (value(f.clock) < limits.first_version || value(f.clock) >= end)
    throw bad_frame(
        "worker_report", "clock", std::to_string(value(f.clock)),
        std::to_string(limits.first_version) + " or more and less than " + std::to_string(end));
  const auto& shape = limits.reports[static_cast<std::size_t>(f.test_net + 1)];
  if (f.sums.size() != shape.sums) refuse("number of sums", f.sums.size(), shape.sums);
  if (f.passes != shape.passes) refuse("number of passes", f.passes, shape.passes);
}

}  // namespace

wire_format format_of(const frames::fresh_parameters& f, const link_limits& limits) {
  if (f.format != wire_format::float32) return f.format;
  return value(f.version) > limits.first_version ? format_of_chunk(f.chunk, limits)
                                                 : wire_format::float32;
}

bool is_of_a_view(const frame_header& h) {
  return row_of_kind(h).view == frame_view::readers;
}

bool is_of_its_senders_view(const frame_header& h) {
  return row_of_kind(h).view == frame_view::senders;
}

bool is_for_the_page(const frame_header& h) {
  return row_of_kind(h).view == frame_view::page;
}

void check_frame(const decoded_header& h, seat_id peer, const link_limits& limits) {
  // A joiner has no seat before its view says so.
  if (h.from.seat != no_seat && peer != no_seat && h.from.seat != peer)
    throw bad_frame(kind_name(h.header), "from", std::to_string(value(h.from.seat)),
                    std::to_string(value(peer)));
  std::visit([&](const auto& f) { check_values(h, f, limits); }, h.header);
}

}  // namespace poseidon
