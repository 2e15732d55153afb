// data/empty_source.hpp - samples without values, for devices that do not read them.
#pragma once
#include "data/source.hpp"

namespace poseidon {

/// A million samples an epoch, each without tops.
[[nodiscard]] std::shared_ptr<const sample_source> open_empty();

}  // namespace poseidon
