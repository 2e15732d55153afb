// actors/routes/route_plan.hpp
//
// By which route each parameter's gradient goes: parameter server or factor broadcast (models/plan/routes.hpp), and in
// which format (models/plan/wire_choice.hpp), which counts in that choice. protocol_selector plans for a run,
// `poseidon-node --explain-routes` for its user.
#pragma once
#include "actors/routes/device_probe.hpp"
#include "actors/run/run_definition.hpp"
#include "models/plan/lossy_choice.hpp"
#include "models/plan/route_choice.hpp"
#include "models/plan/wire_choice.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

struct route_request {
  run_definition run;
  node_spec node;
  route_option option;
  wire_option wire;
  /// The roughest way that may be chosen by predicted time, where `wire` says none.
  lossiness lossy;
  double link_mbit_s = 0;  ///< out of a node, to all peers together; 0: not known
  bool explain = false;    ///< predict times also where the option leaves nothing to choose
};

struct route_plan {
  std::uint64_t batch = 0;  ///< of the train net, on one node
  parameter_routes routes;
  std::map<std::uint64_t, parameter_routes> later;  ///< by the clock from which they hold
  parameter_formats wire;
  std::optional<lossy_choice> ladder;     ///< where formats were chosen by predicted time
  std::vector<route_load> loads;          ///< by layer
  std::vector<route_decision> decisions;  ///< empty where nothing was predicted
  std::vector<std::string> reasons;       ///< by layer, for the user; see run_definition
  route_rates rates;
  std::vector<std::string> notes;  ///< for the user
  bool rate_assumed = false;       ///< the choice rests on an assumed link rate
  bool rate_decides = false;       ///< another rate could lead to another choice
};

/// Times the device for some milliseconds in this thread, if there is a choice.
/// Errors   spec_error, as resolve_train_net and layers_of_option.
[[nodiscard]] route_plan plan_routes(const route_request& request, device_probe& probe);

/// By layer: whether the plan predicts that it is faster by factor_broadcast.
[[nodiscard]] std::vector<bool> chosen_layers(const route_plan& plan);

}  // namespace poseidon
