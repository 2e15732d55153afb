// models/shape.hpp - extents of a blob, outermost axis first, as Caffe counts them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

using shape = std::vector<std::int64_t>;

/// Number of values in axes [from, to); 1 for an empty range, so a scalar (0 axes) holds one value.
[[nodiscard]] std::int64_t count(const shape& s, std::size_t from, std::size_t to);
[[nodiscard]] std::int64_t count(const shape& s);

/// Number of values; nothing where the product exceeds 64 bits or an extent is negative.
[[nodiscard]] std::optional<std::int64_t> checked_count(const shape& s);

/// "64x1x28x28"; "scalar" for 0 axes.
[[nodiscard]] std::string to_string(const shape& s);

}  // namespace poseidon
