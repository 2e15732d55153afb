#include "cpu/factors.hpp"

#include "cpu/matrix.hpp"

#include <stdexcept>
#include <string>

namespace poseidon::cpu {

namespace {

void require(const char* what, std::size_t got, std::size_t wanted) {
  if (got != wanted)
    throw std::invalid_argument("reconstruct_gradient: " + std::string(what) + " has " +
                                std::to_string(got) + " values, " + std::to_string(wanted) +
                                " are needed");
}

}  // namespace

void reconstruct_gradient(const factor_shape& s, std::span<const float> u, std::span<const float> v,
                          std::span<float> weights, std::span<float> bias) {
  require("u", u.size(), s.rows * s.outputs);
  require("v", v.size(), s.rows * s.inputs);
  require("weights", weights.size(), s.outputs * s.inputs);
  if (!bias.empty()) require("bias", bias.size(), s.outputs);
  if (s.transposed) {
    multiply(s.inputs, s.outputs, s.rows, {v.data(), true, s.inputs}, {u.data(), false, s.outputs},
             weights.data());
  } else {
    multiply(s.outputs, s.inputs, s.rows, {u.data(), true, s.outputs}, {v.data(), false, s.inputs},
             weights.data());
  }
  if (!bias.empty()) sum_rows(s.rows, s.outputs, u.data(), bias.data());
}

}  // namespace poseidon::cpu
