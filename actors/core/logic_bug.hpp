// actors/core/logic_bug.hpp - our own fault: an actor got what the protocol between actors rules out.
#pragma once
#include <stdexcept>
#include <string>

namespace poseidon {

/// The actor's name is put before the text by actor<>'s exception handler.
struct logic_bug : std::logic_error {
  template <class Got, class Expected>
  logic_bug(const std::string& what, Got got, Expected expected)
      : std::logic_error("internal error: " + what + " (got " + std::to_string(got) +
                         ", expected " + std::to_string(expected) + "). Please report this.") {}
};

}  // namespace poseidon
