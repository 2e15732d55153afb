#include "cpu/solver_update.hpp"

#include "models/solver/solver_arithmetic.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <immintrin.h>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace poseidon::cpu {
namespace {

void require_size(const char* what, std::size_t has, std::size_t needs) {
  if (has == needs) return;
  throw std::invalid_argument("update: " + std::string(what) + " has " + std::to_string(has) +
                              " values, the gradient has " + std::to_string(needs));
}

struct state {
  const float* before = nullptr;
  float* after = nullptr;
  bool past_caches = false;

  [[nodiscard]] state from(std::size_t first) const {
    return before == nullptr ? *this : state{before + first, after + first, past_caches};
  }
};

/// Without a second array of solver state `second` is not looked at.
struct arrays {
  std::size_t size;
  const float* gradient;
  const float* values;
  float* fresh;
  state first, second;

  [[nodiscard]] arrays part(std::size_t from, std::size_t count) const {
    return {count,        gradient + from,  values + from,
            fresh + from, first.from(from), second.from(from)};
  }
};

state pointers_to(const state_array& a) {
  return {a.before.data(), a.after.data(), a.past_caches};
}

/// So many values of each array lie in the first cache together, with room for what the processor reads ahead.
constexpr std::size_t values_in_cache = 512;

void write_past_caches(float* to, const float* from, std::size_t count) {
  constexpr std::size_t width = 4, bytes = width * sizeof(float);
  for (; count > 0 && reinterpret_cast<std::uintptr_t>(to) % bytes != 0; --count) *to++ = *from++;
  for (; count >= width; count -= width, to += width, from += width)
    _mm_stream_ps(to, _mm_loadu_ps(from));
  std::copy_n(from, count, to);
}

/// Updates one part after the other. What a part has made is written past the caches, and added to the checksum, while it lies in the first one.
template <class Update>
void by_parts(const arrays& a, value_checksum* made, const Update& update) {
  float first[values_in_cache], second[values_in_cache];
  for (std::size_t at = 0; at < a.size; at += values_in_cache) {
    const auto count = std::min(values_in_cache, a.size - at);
    auto part = a.part(at, count);
    if (a.first.past_caches) part.first.after = first;
    if (a.second.past_caches) part.second.after = second;
    update(part);
    if (a.first.past_caches) write_past_caches(a.first.after + at, first, count);
    if (a.second.past_caches) write_past_caches(a.second.after + at, second, count);
    if (made != nullptr) made->add({part.fresh, count});
  }
  _mm_sfence();  // such writes may come after those of a lock that gives the arrays to another thread
}

template <bool L1, class Formula>
void for_each(const arrays& a, const rule_step& step, const Formula& formula) {
  const float scale = step.scale;
  const float decay = step.decay;
#pragma GCC ivdep
  for (std::size_t i = 0; i < a.size; ++i) {
    const float w = a.values[i];
    const float g = rules::regularised<L1>(a.gradient[i], w, scale, decay);
    float first = a.first.before[i];
    if constexpr (std::is_invocable_v<Formula, float, float&, float&>) {
      float second = a.second.before[i];
      a.fresh[i] = w - formula(g, first, second);
      a.second.after[i] = second;
    } else {
      a.fresh[i] = w - formula(g, first);
    }
    a.first.after[i] = first;
  }
}

}  // namespace

void add(std::span<float> into, std::span<const float> x) {
  if (into.size() != x.size()) {
    throw std::invalid_argument("add: " + std::to_string(x.size()) + " values into " +
                                std::to_string(into.size()));
  }
  float* to = into.data();
  const float* from = x.data();
#pragma GCC ivdep
  for (std::size_t i = 0; i < into.size(); ++i) to[i] += from[i];
}

void scale(float factor, std::span<const float> x, std::span<float> to) {
  if (to.size() != x.size()) {
    throw std::invalid_argument("scale: " + std::to_string(x.size()) + " values into " +
                                std::to_string(to.size()));
  }
  const float* from = x.data();
  float* into = to.data();
#pragma GCC ivdep
  for (std::size_t i = 0; i < to.size(); ++i) into[i] = factor * from[i];
}

bool all_finite(std::span<const float> x) {
  // An infinity or a NaN has all bits of its exponent set; integers vectorise without -ffast-math.
  std::uint32_t found = 0;
  for (const float v : x) {
    found |= (std::bit_cast<std::uint32_t>(v) & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  }
  return found == 0;
}

void update(const solver_rule& rule, const rule_step& step, std::span<const float> gradient,
            std::span<const float> values, std::span<float> fresh,
            std::span<const state_array> history, value_checksum* made) {
  require_size("values", values.size(), gradient.size());
  require_size("fresh", fresh.size(), gradient.size());
  const std::size_t slots = history_count(rule.kind);
  if (history.size() != slots) {
    throw std::invalid_argument("update: the rule keeps " + std::to_string(slots) +
                                " history arrays, it was given " + std::to_string(history.size()));
  }
  for (const auto& h : history) {
    require_size("history", h.before.size(), gradient.size());
    require_size("history", h.after.size(), gradient.size());
  }
  const arrays a{gradient.size(),         gradient.data(),
                 values.data(),           fresh.data(),
                 pointers_to(history[0]), slots == 2 ? pointers_to(history[1]) : state{}};
  rules::with_formula(rule, step, [&](const auto& formula) {
    const auto update = [&](const arrays& part) {
      rule.decay_norm == regularizer::l1 ? for_each<true>(part, step, formula)
                                         : for_each<false>(part, step, formula);
    };
    const bool whole = made == nullptr && !a.first.past_caches && !a.second.past_caches;
    whole ? update(a) : by_parts(a, made, update);
  });
}

void update_average(float momentum, std::span<const float> change, std::span<const float> values,
                    std::span<float> fresh) {
  if (change.size() != fresh.size() || values.size() != fresh.size()) {
    throw std::invalid_argument("a statistic of " + std::to_string(fresh.size()) +
                                " values was given " + std::to_string(values.size()) +
                                " values and a change of " + std::to_string(change.size()));
  }
  for (std::size_t i = 0; i < fresh.size(); ++i) fresh[i] = momentum * values[i] + change[i];
}

}  // namespace poseidon::cpu
