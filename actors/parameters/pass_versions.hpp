// actors/parameters/pass_versions.hpp
//
// What the kernels of one replica read at staleness s > 0, where a newer version can come while a pass is under
// way: each parameter is pinned to the newest version when the first kernel of a pass asks for it, and stays there
// until the first one of the next pass. So forward and backward of a pass compute with the same values, also where
// layers share a parameter. What is pinned is not overwritten: parameter_store.hpp says why.
//
// Threads: the replica's stream, which executes pass after pass.
#pragma once
#include "actors/parameters/parameter_store.hpp"
#include "messages/training.hpp"

#include <cstdint>
#include <deque>
#include <memory>

namespace poseidon {

class pass_versions {
 public:
  explicit pass_versions(std::shared_ptr<const parameter_store> store)
      : store_(std::move(store)), pins_(store_->parameters()) {}

  /// What the replica's kernels read; the same object for its training and its test nets.
  [[nodiscard]] const parameter_values& view(std::size_t parameter) const {
    return pins_[parameter].values;
  }

  /// A pass of the training net (-1) or of a test net begins to read the parameter, or goes on.
  void pin(std::size_t parameter, std::int32_t test_net, const pass_id& pass);

 private:
  struct pin_state {
    parameter_values values;
    std::int32_t test_net = -2;  // none yet
    pass_id pass;
  };
  std::shared_ptr<const parameter_store> store_;
  std::deque<pin_state> pins_;  // by parameter; a deque because atomics stay where they are
};

}  // namespace poseidon
