// actors/routes/program_routes.hpp
//
// By which route the gradients of a program go (actors/client): as route_plan.hpp for a net, but by what the program has measured
// instead of by the shapes of layers. All begin on the server; when every worker's program has said what it can give as
// factors, protocol_selector proposes what this chooses.
#pragma once
#include "actors/routes/device_probe.hpp"
#include "actors/routes/route_plan.hpp"
#include "messages/client.hpp"
#include "models/plan/route_choice.hpp"

#include <string>
#include <vector>

namespace poseidon {

struct program_plan {
  std::vector<route_load> loads;         ///< one per parameter, in the order of the forward pass
  std::vector<parameter_id> parameters;  ///< of the loads
  std::vector<bool> chosen;              ///< by load: it is to be broadcast as factors
  route_rates rates;
  std::string why;  ///< for the user; empty: everything stays on the server
};

/// Times `probe` for some milliseconds in this thread. `request.option`: automatic chooses by seconds, factors all that can be.
[[nodiscard]] program_plan plan_program(const route_request& request,
                                        const factors_offered& offered, device_probe& probe);

/// The routes of a program whose loads `chosen` go as factors.
[[nodiscard]] parameter_routes routes_of(const program_plan& plan, const std::vector<bool>& chosen);

}  // namespace poseidon
