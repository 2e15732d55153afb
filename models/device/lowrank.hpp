// models/device/lowrank.hpp
//
// A gradient as the product of two thin matrices, P Qt, that is as near to it as their rank allows: what the route
// `lowrank` sends of one. A power iteration with one step a clock: P = M Q with the Q of the clock before, P is
// orthogonalised, Q = Mt P. What a node has not sent, M - P Qt, is its error memory and part of M in the next clock.
//
// Nodes have to have the same bits. What is made once and travels as bytes may round as a processor likes: lowrank_p(),
// lowrank_q() and orthogonalise(). What every node makes for itself is a fixed order of single operations:
// first_q(), warm_start() and lowrank_gradient().
//
// Source   Vogels, Karimireddy & Jaggi, "PowerSGD", NeurIPS 2019, algorithm 1.
#pragma once
#include "models/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace poseidon {

/// The matrix: a parameter's first axis times all others, row-major, so of a convolution output channels x (channels x kernel).
struct lowrank_shape {
  std::size_t rows = 0, columns = 0;
  std::size_t rank = 0;  ///< at most max_rank

  [[nodiscard]] std::size_t values() const { return rows * columns; }
  [[nodiscard]] std::size_t p_values() const { return rows * rank; }     ///< P [rows, rank]
  [[nodiscard]] std::size_t q_values() const { return columns * rank; }  ///< Q [columns, rank]
};

inline constexpr std::size_t max_rank = 8;

/// Where the random numbers of a Q come from: the run's seed, the layer, and the clock that the Q is for.
struct lowrank_draw {
  std::uint64_t seed = 0;
  layer_id layer{};
  std::uint64_t clock = 0;
};

/// The Q of a view's first clock: numbers from -1 to 1.
void first_q(const lowrank_shape& shape, const lowrank_draw& draw, std::span<float> q);

/// The Q of clock `draw.clock`, from the sum that the clock before has ended with: each column times a power of two, so that products stay
/// in float32's range whatever the gradients' size. A column of zeros finds nothing any more, so it begins with random numbers again.
void warm_start(const lowrank_shape& shape, const lowrank_draw& draw, std::span<const float> sum,
                std::span<float> q);

/// p = m q.
void lowrank_p(const lowrank_shape& shape, std::span<const float> m, std::span<const float> q,
               std::span<float> p);
/// q = mt p.
void lowrank_q(const lowrank_shape& shape, std::span<const float> m, std::span<const float> p,
               std::span<float> q);

/// Makes P's columns orthogonal, each of length 1, by Gram-Schmidt, twice for each column. A column that the ones before it
/// leave nothing of becomes 0. Where any value is not finite all become NaN, so that the loss shows it.
void orthogonalise(const lowrank_shape& shape, std::span<float> p);

/// gradient = p qt: of each value p_0 q_0, then + p_1 q_1 and so on, each product and each sum rounded once.
void lowrank_gradient(const lowrank_shape& shape, std::span<const float> p,
                      std::span<const float> q, std::span<float> gradient);
/// m -= p qt: what is left in a node's error memory.
void lowrank_take_off(const lowrank_shape& shape, std::span<const float> p,
                      std::span<const float> q, std::span<float> m);

}  // namespace poseidon
