// actors/parameters/pass_versions.hpp
//
// The parameters that the kernels of one replica read at staleness s > 0, where a newer version can arrive during a
// pass. The first kernel of a pass that reads a parameter pins it to its newest version, until the first kernel of the
// next pass does. So forward and backward of a pass compute with the same values, also where
// layers share a parameter. Pinned values are not overwritten: parameter_store.hpp says why.
//
// Threads: the replica's stream, which executes pass after pass.
#pragma once
#include "actors/parameters/parameter_store.hpp"
#include "messages/training.hpp"

#include <cstdint>
#include <memory>

namespace poseidon {

class pass_versions {
 public:
  explicit pass_versions(std::shared_ptr<const parameter_store> store)
      : store_(std::move(store)), pins_(store_->parameters().size()) {}

  /// The replica's kernels read this one object, in its training net and in its test nets.
  [[nodiscard]] const parameter_values& view(parameter_id parameter) const {
    return pins_[parameter].values;
  }

  /// A kernel in a pass of the training net (-1) or of a test net is about to read the parameter.
  void pin(parameter_id parameter, std::int32_t test_net, const pass_id& pass);

 private:
  struct pin_state {
    parameter_values values;
    std::int32_t test_net = -2;  // none yet
    pass_id pass;
  };
  std::shared_ptr<const parameter_store> store_;
  by_id<parameter_id, pin_state> pins_;
};

}  // namespace poseidon
