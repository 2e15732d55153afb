#include "gpu/tuning.hpp"

#include "gpu/kernels/elementwise.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>

namespace poseidon::gpu {
namespace {

constexpr double hopeless = 3;  // times as long as another way: not tried again

/// Nothing if this device cannot do it now.
std::optional<double> attempt(const std::function<double()>& milliseconds) {
  try {
    return milliseconds();
  } catch (const error& e) {
    if (e.kind() != error_kind::memory && e.kind() != error_kind::unsupported) throw;
    return std::nullopt;
  }
}

}  // namespace

std::size_t tuning::choose(const product& p, std::size_t ways,
                           const std::function<double(std::size_t)>& milliseconds) {
  const std::lock_guard lock(mutex_);
  if (const auto known = ways_.find(p); known != ways_.end()) return known->second;
  std::size_t chosen = 0;
  std::optional<double> first, least;
  for (std::size_t way = 0; way < ways; ++way) {
    const auto ms = attempt([&] { return milliseconds(way); });
    if (way == 0) first = ms;
    if (!ms || (least && *ms >= *least)) continue;
    least = ms;
    chosen = way;
  }
  ++(least ? gain_.tried : gain_.untried);
  if (chosen != 0) ++gain_.changed;
  if (first) {
    gain_.first_ms += *first;
    gain_.chosen_ms += *least;
  }
  ways_.emplace(p, chosen);
  return chosen;
}

tuning::gain tuning::gained() const {
  const std::lock_guard lock(mutex_);
  return gain_;
}

std::string to_string(const tuning::gain& g) {
  char text[240];
  std::snprintf(text, sizeof text,
                "%zu products of convolutions tried, %zu of them computed in another way than the "
                "library's heuristics like best: %.3f ms instead of %.3f ms, one of each",
                g.tried, g.changed, g.chosen_ms, g.first_ms);
  return text + (g.untried == 0 ? std::string()
                                : "; " + std::to_string(g.untried) +
                                      " not tried, for which there was no memory beside the net");
}

double least_ms(stream& s, int repetitions, const std::function<void()>& enqueue, double to_beat) {
  event begin(s.device(), event_use::timing), end(s.device(), event_use::timing);
  enqueue();
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repetitions; ++i) {
    record(begin, s);
    enqueue();
    record(end, s);
    synchronise(end);
    least = std::min(least, milliseconds_between(begin, end));
    if (least > hopeless * to_beat) break;
  }
  return least;
}

std::size_t fastest_way(library& with, const tuning::product& p, std::size_t ways,
                        const product_run& run) {
  const auto& tuned = with.options().autotune;
  if (tuned == nullptr || ways < 2) return 0;
  constexpr int repetitions = 5;
  stream& s = with.on();
  const convolution_shape& shape = p.first;
  const std::int64_t values[] = {shape.batch * shape.image_values(), shape.weight_values(),
                                 shape.batch * shape.result_values()};
  const value_type type = type_of(shape.order);
  device_memory operands[3];
  double least = std::numeric_limits<double>::infinity();
  return tuned->choose(p, ways, [&](std::size_t way) {
    for (std::size_t o = 0; o < 3; ++o) {
      if (operands[o].size() != 0) continue;
      const auto size = static_cast<std::size_t>(values[o]);
      operands[o] = device_memory(s.device(), size * width(type));
      fill(s, size, 0.5f, gpu::values(operands[o].bytes(), type));
    }
    const auto enqueue = [&] {
      run(way, {operands[0].bytes(), type}, {operands[1].bytes(), type},
          {operands[2].bytes(), type});
    };
    try {
      const double ms = least_ms(s, repetitions, enqueue, least);
      least = std::min(least, ms);
      return ms;
    } catch (const error& e) {
      // An engine that fails when it is run is no way; a lost device fails here, too.
      finish(s);
      throw error(error_kind::unsupported, e.code(), e.what());
    }
  });
}

}  // namespace poseidon::gpu
