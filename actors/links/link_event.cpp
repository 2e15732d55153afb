#include "actors/links/link_event.hpp"

#include "messages/wire/codec.hpp"

#include <type_traits>
#include <variant>

namespace poseidon {

link_event describe(const frame_header& h) {
  link_event e;
  e.kind = kind_name(h);
  std::visit(
      [&e](const auto& f) {
        if constexpr (requires { f.chunk; }) e.chunk = f.chunk;
        if constexpr (requires { f.layer; }) e.layer = f.layer;
        if constexpr (requires { f.clock; }) e.number = value(f.clock);
        if constexpr (requires { f.version; }) e.number = value(f.version);
        // As the fresh parameters in whose place it comes: the version that it makes.
        if constexpr (std::is_same_v<std::decay_t<decltype(f)>, frames::summed_gradient>)
          ++e.number;
      },
      h);
  return e;
}

}  // namespace poseidon
