// messages/overloaded.hpp - one function object of several, for std::visit over a frame_header.
#pragma once
#include <concepts>

namespace poseidon {

/// std::visit(overloaded{[](const frames::goodbye& f) {...}, ...}, header) does not compile while a kind is missing.
template <class... Functions>
struct overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
overloaded(Functions...) -> overloaded<Functions...>;

/// Whether T is one of the types listed: names kinds of frames that one function takes.
template <class T, class... Listed>
concept one_of = (std::same_as<T, Listed> || ...);

}  // namespace poseidon
