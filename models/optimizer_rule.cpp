#include "models/optimizer_rule.hpp"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <sstream>

namespace poseidon {

std::string_view name_of(optimizer_rule rule) {
  switch (rule) {
    case optimizer_rule::none:
      return "none";
    case optimizer_rule::sgd:
      return "SGD";
    case optimizer_rule::adam:
      return "Adam";
    case optimizer_rule::adamw:
      return "AdamW";
  }
  return "unknown";
}

/// FNV-1a: two steps that differ are to have different digests, and nobody tries to make them equal.
step_mark mark_of(const optimizer_step& step) {
  std::uint32_t digest = 2166136261u;
  const auto add = [&](std::uint64_t bits) {
    for (int byte = 0; byte < 8; ++byte) {
      digest ^= static_cast<std::uint32_t>(bits >> (8 * byte)) & 0xffu;
      digest *= 16777619u;
    }
  };
  for (const double v :
       {step.rate, step.weight_decay, step.momentum, step.dampening, step.beta2, step.epsilon})
    add(std::bit_cast<std::uint64_t>(v));
  add((step.nesterov ? 1u : 0u) | (step.lerp ? 2u : 0u));
  add(step.rest);
  add(step.number);
  return {step.rate, std::max(digest, 1u), wire_format::float32};
}

step_mark mark_of(const std::optional<optimizer_step>& step) {
  return step ? mark_of(*step) : step_mark{};
}

std::string difference_of_steps(std::string_view parameter, std::uint64_t clock,
                                std::uint32_t worker, const step_mark& mark, std::uint32_t other,
                                const step_mark& of_other) {
  std::ostringstream out;
  out << "clock " << clock << ", \"" << parameter << "\": ";
  if (mark.wire != of_other.wire)
    out << "worker " << worker << " sends " << to_string(mark.wire) << ", worker " << other << " "
        << to_string(of_other.wire)
        << ". Was a communication hook registered on one worker alone? Register the same one on "
           "all "
           "workers, or give worker 0 the option wire";
  else if (mark.rate != of_other.rate)
    out << "worker " << worker << " has the learning rate " << mark.rate << ", worker " << other
        << " " << of_other.rate
        << ". Was a checkpoint loaded on one worker alone? Load it on all workers, and give "
           "them the same schedule";
  else
    out << "workers " << worker << " and " << other
        << " have the same learning rate, and another momentum, weight decay, beta, eps, option "
           "(foreach, fused, ...), number of steps or first state. Was a checkpoint loaded on one "
           "worker alone? Give all workers the same optimizer, and load its state on all of them";
  return out.str();
}

}  // namespace poseidon
