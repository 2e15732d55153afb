// What an authenticated peer sends in a run: a preamble and a header. What frame_check accepts must lie within the run,
// as link_receiver and the actors behind it rely on.
#include "actors/links/frame_check.hpp"
#include "messages/node_report.hpp"
#include "tests/fuzz/target.hpp"

#include <vector>

using namespace poseidon;

namespace {

constexpr seat_id the_peer{1};

link_limits limits_of_a_run() {
  link_limits l;
  l.chunk_values = {10, 20, 300, 301};
  l.chunk_formats = {wire_format::float32, wire_format::float16, wire_format::int8,
                     wire_format::int4};
  l.first_version = 3;
  l.end_clock = 10;
  l.history_slots = 2;
  l.clips = true;
  l.shared = {0, 5, 5000001};
  l.watches = true;
  l.factors = {{}, {}, factor_shape{4, 3, 2}};
  l.reports = {{3, 1}, {1, 5}};
  return l;
}

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(std::string("accepted: ") + what);
}

template <class F>
void hold(const F& f, std::size_t payload, const link_limits& limits) {
  if constexpr (requires { f.chunk; }) {
    require(limits.chunk_values.contains(f.chunk), "a chunk that is none");
    require(payload > 0 && payload <= 4 * limits.chunk_values[f.chunk], "a chunk's size");
  }
  if constexpr (requires { f.slot; }) require(f.slot < limits.history_slots, "a slot that is none");
}

/// What is read of a payload lies within it: the sanitizers see what is read beyond.
void hold(const frames::push_gradient& f, std::size_t payload, const link_limits& limits) {
  require(limits.chunk_values.contains(f.chunk), "a chunk that is none");
  std::vector<float> values(limits.chunk_values[f.chunk]);
  decode(limits.chunk_formats[f.chunk], std::vector<std::byte>(payload, std::byte{0x7f}), values);
}

void hold(const frames::install_history& f, std::size_t payload, const link_limits& limits) {
  require(limits.chunk_values.contains(f.chunk), "a chunk that is none");
  require(payload > 0 && f.first + payload / 4 <= limits.chunk_values[f.chunk],
          "solver state beyond the chunk");
}

void hold(const frames::factors& f, std::size_t payload, const link_limits& limits) {
  require(limits.factors.contains(f.layer), "a layer that is none");
  require(f.first + payload / 4 <= limits.factors[f.layer].values(), "factors beyond the layer's");
}

void hold(const frames::lowrank_factor& f, std::size_t payload, const link_limits& limits) {
  require(limits.lowrank.contains(f.layer), "a layer that is none");
  const auto& sizes = limits.lowrank[f.layer];
  require(payload > 0 && payload == (f.second ? sizes.second : sizes.first), "P or Q");
}

void hold(const frames::shared_state& f, std::size_t payload, const link_limits& limits) {
  require(f.index < limits.shared.size(), "an entry that is none");
  require(payload > 0 && f.first + payload <= limits.shared[f.index], "bytes beyond the entry");
}

void hold(const frames::worker_report& f, std::size_t, const link_limits& limits) {
  require(static_cast<std::size_t>(f.test_net + 1) < limits.reports.size(), "a net that is none");
  require(f.sums.size() == limits.reports[static_cast<std::size_t>(f.test_net + 1)].sums, "sums");
  require(f.passes > 0, "a report of no passes");
  require(value(f.clock) <= limits.end_clock, "a clock after the end");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < preamble_bytes) return 0;
  return fuzz::accept_or_refuse([&] {
    const auto* from = reinterpret_cast<const std::byte*>(bytes);
    const std::vector<std::byte> header(from + preamble_bytes, from + size);
    const auto decoded = decode_header(header);
    static const auto limits = limits_of_a_run();
    check_frame(decoded, the_peer, limits);
    std::visit([&](const auto& f) { hold(f, decoded.payload_bytes, limits); }, decoded.header);
    require(decoded.from.seat == the_peer || decoded.from.seat == no_seat, "another node's name");
    require(decoded.payload_bytes <= max_payload_bytes, "a payload too long for any kind");
  });
}
