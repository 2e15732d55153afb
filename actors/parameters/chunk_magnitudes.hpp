// actors/parameters/chunk_magnitudes.hpp
//
// How much each chunk of a node's gradients matters, relative to the parameters (send_order.hpp), for managed communication.
// They are kept for the s + 1 clocks that can be under way, as in gradient_sum.hpp.
//
// Threads: the stream that has completed the sum calls weigh(); gradient_push calls of() when it has been told.
#pragma once
#include "actors/parameters/gradient_sum.hpp"
#include "actors/parameters/parameter_store.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace poseidon {

class chunk_magnitudes {
 public:
  /// `parameters`: in the order of the sum's parts. `scale` turns the sum into an average over the node's passes.
  chunk_magnitudes(std::shared_ptr<const gradient_sum> sum,
                   std::shared_ptr<const parameter_store> store,
                   std::vector<parameter_id> parameters, float scale, std::uint64_t staleness);

  /// The sum of `clock` is complete and not yet sent.
  void weigh(std::uint64_t clock);
  /// The magnitude of the j-th chunk of the i-th parameter.
  [[nodiscard]] float of(std::uint64_t clock, std::size_t i, std::size_t j) const;

 private:
  std::shared_ptr<const gradient_sum> sum_;
  std::shared_ptr<const parameter_store> store_;
  std::vector<parameter_id> parameters_;
  float scale_;
  std::vector<std::vector<std::vector<float>>> ring_;  // by clock modulo s + 1, parameter, chunk
};

}  // namespace poseidon
