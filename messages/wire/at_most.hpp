// messages/wire/at_most.hpp - what a peer announces against what this build reads.
#pragma once
#include "messages/wire/codec.hpp"

#include <string>
#include <string_view>

namespace poseidon {

/// Errors   bad_frame if `got` is more than `limit`.
inline void at_most(std::string_view kind, std::string_view field, std::size_t got,
                    std::size_t limit) {
  if (got > limit)
    throw bad_frame(kind, field, std::to_string(got), "at most " + std::to_string(limit));
}

}  // namespace poseidon
