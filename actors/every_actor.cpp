#include "actors/every_actor.hpp"

namespace poseidon {

std::string print_type_graph() {
  return to_mermaid(describe(every_actor{}));
}

}  // namespace poseidon
