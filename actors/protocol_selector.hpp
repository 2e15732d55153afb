// actors/protocol_selector.hpp
//
// Chooses by which route each parameter's gradient goes: parameter server or factor broadcast (models/routes.hpp). One
// per cluster, on worker 0, before the others are told what is trained; the choice is part of the view, so all nodes
// train with the same one from the first clock on.
//
// Accepts  choose_routes   from node   once
//          shut_down       from node
// Sends    routes_chosen   to node
// State    none.
// Fails    never by exception: what --routes asks for and the net cannot do is part of the answer.
// Detached: it opens data sources for the shapes of their samples, and times this device.
#pragma once
#include "actors/actor.hpp"
#include "actors/run_spec.hpp"
#include "messages/training.hpp"
#include "models/route_choice.hpp"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace poseidon {

struct routes_chosen {
  parameter_routes routes;
  std::vector<std::string> notes;  ///< for the user
  std::string error;               ///< empty: none
};

/// node -> protocol_selector
struct choose_routes {
  port<routes_chosen> reply;
};

struct protocol_selector_setup {
  run_spec run;
  node_spec node;
  route_wish wish;
  double link_mbit_s = 0;  ///< out of a node, all peers together; 0: not known
  bool explain = false;    ///< predict also where the wish leaves nothing to decide
};

/// How fast this device is at what a route costs: each question is answered by some milliseconds of doing it, once.
class device_probe {
 public:
  explicit device_probe(std::shared_ptr<const device> d) : device_(std::move(d)) {}
  /// Seconds of this thread; from a part of the product, if the whole takes longer than milliseconds.
  [[nodiscard]] double product_s(const factor_shape& s);
  [[nodiscard]] double update_s_value(const solver_rule& rule);
  [[nodiscard]] double add_s_value();

 private:
  std::shared_ptr<const device> device_;
  std::map<std::array<std::size_t, 4>, double> flop_s_;  // by shape
};

struct route_plan {
  parameter_routes routes;
  std::vector<route_decision> decisions;  ///< empty where nothing was predicted
  route_rates rates;
  std::vector<std::string> notes;  ///< for the user
};

/// What the actor does, for whoever only wants to know. Times the device for some milliseconds in this thread.
/// Errors   spec_error, as resolve_train_net and wished_layers.
[[nodiscard]] route_plan plan_routes(const protocol_selector_setup& setup);

class protocol_selector : public actor<protocol_selector> {
 public:
  static constexpr const char* type_name = "protocol_selector";
  using accepts = messages<choose_routes, shut_down>;
  using sends = messages<routes_chosen>;

  protocol_selector(actor_context context, protocol_selector_setup setup);
  void on(const choose_routes& m);
  void on(const shut_down& m);

 private:
  protocol_selector_setup setup_;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::choose_routes)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::routes_chosen)
