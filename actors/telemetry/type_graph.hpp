// actors/telemetry/type_graph.hpp
//
// Which actor class can send what to which: read from the accepts and sends lists that the compiler enforces. Drawn as
// Mermaid text in docs/architecture.md.
#pragma once
#include "actors/core/edges.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

template <class... Ms>
struct messages;  // actors/core/actor.hpp

/// What one actor class declares.
struct actor_type {
  std::string_view name;
  std::vector<std::string_view> accepts, sends;
};

template <class... Actors>
struct actor_list {};

namespace detail {
template <class... Ms>
std::vector<std::string_view> message_names(const messages<Ms...>*) {
  return {message_name<Ms>()...};
}
}  // namespace detail

/// Classes of one name become one actor, which accepts and sends what each of them does.
[[nodiscard]] std::vector<actor_type> merged(std::vector<actor_type> types);

template <class... Actors>
[[nodiscard]] std::vector<actor_type> describe(actor_list<Actors...>) {
  return merged({actor_type{
      Actors::type_name, detail::message_names(static_cast<typename Actors::accepts*>(nullptr)),
      detail::message_names(static_cast<typename Actors::sends*>(nullptr))}...});
}

/// Mermaid text, in the order of names.
[[nodiscard]] std::string to_mermaid(std::vector<actor_type> types);

/// "solver sends lost_message" for each declared message that no listed actor accepts.
[[nodiscard]] std::vector<std::string> unheard(const std::vector<actor_type>& types);

/// to_mermaid() of every actor of Poseidon (actors/every_actor.hpp).
[[nodiscard]] std::string print_type_graph();

}  // namespace poseidon
