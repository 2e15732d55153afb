// actors/routes/protocol_selector.hpp
//
// Chooses by which route each parameter's gradient goes: parameter server or factor broadcast (models/plan/routes.hpp), and
// turns what --wire says into a format for each parameter (models/plan/wire_choice.hpp), which counts in that choice. One
// per cluster, on worker 0, before the others are told what is trained; the choice is part of the view, so all nodes
// train with the same one from the first clock on. Where it has to choose and nobody has told it the links' rate, it
// chooses when all nodes are in, after it has timed the links. From then on it hears how fast the links are; where
// another choice would be better by more than a change costs, it proposes that (replanner.hpp).
//
//   chosen <--choose_routes-- idle --choose_routes, rate unknown--> waiting --measure_links--> timing --all heard--> chosen
//
// Accepts  choose_routes   from node   before anybody can join; where shares of the batch are not equal, once more
//                                      when they are known
//          measure_links   from node   once, if it was told that the rate is missing
//          probe_answered  from node   what a peer says to a round of probes
//          send_rate_measured    from node   what a node's links take, a few times a second
//          routes_changed  from node   all nodes train with what was proposed
//          shut_down       from node
// Sends    routes_chosen   to node
//          routes_proposed to node
//          send_frame      to network_link   probes
// State    the plan's setup, the timings of this device, the round of probes under way.
// Fails    never by exception: what --routes asks for and the net cannot do is part of the answer.
// Detached: it opens data sources for the shapes of their samples, and times this device.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/routes/bandwidth_probe.hpp"
#include "actors/routes/replanner.hpp"
#include "actors/run/run_definition.hpp"
#include "messages/link.hpp"
#include "messages/training.hpp"
#include "models/plan/route_choice.hpp"
#include "models/plan/wire_choice.hpp"

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

struct routes_chosen {
  std::uint64_t batch = 0;    ///< of the train net, on one node
  bool needs_rate = false;    ///< not chosen yet: measure_links is wanted when all are in
  bool follow_links = false;  ///< others are proposed when nodes tell of other rates
  parameter_routes routes;
  std::map<std::uint64_t, parameter_routes> later;  ///< by the clock from which they hold
  parameter_formats wire;
  std::vector<route_decision> decisions;  ///< empty where nothing was predicted
  std::vector<std::string> reasons;       ///< by layer, for the user; see run_definition
  std::vector<std::string> notes;         ///< for the user
  std::string error;                      ///< empty: none
};

/// protocol_selector -> node: better from now on.
struct routes_proposed {
  parameter_routes routes;
  std::string why;  ///< for the user
};

/// node -> protocol_selector
struct choose_routes {
  port<routes_chosen> reply;
  port<routes_proposed> proposals;
  node_shares shares;  ///< of the batch; empty: equal, or not known yet
};

/// node -> protocol_selector: links to all other nodes, which do nothing yet.
struct measure_links {
  std::vector<port<send_frame>> links;
};

/// node -> protocol_selector
struct probe_answered {
  worker_id from{};
  std::uint32_t round = 0;
};

/// node -> protocol_selector: `from`'s own measurement while training.
struct send_rate_measured {
  worker_id from{};
  double mbit_s = 0;
  bool probed = false;  ///< as in frames::send_rate
};

/// node -> protocol_selector: done, and so long everybody stood still for it.
struct routes_changed {
  std::chrono::milliseconds stood{};
};

struct protocol_selector_setup {
  run_definition run;
  node_spec node;
  route_option option;
  wire_option wire;
  double link_mbit_s = 0;  ///< out of a node, all peers together; 0: not known
  bool explain = false;    ///< predict also where the wish leaves nothing to decide
};

/// How fast this device is at what a route costs: each question is answered by some milliseconds of doing it, once.
class device_probe {
 public:
  explicit device_probe(std::shared_ptr<const device> d) : device_(std::move(d)) {}
  /// From now on products are the host's, whatever the device does beside it.
  void ask_host() { asks_host_ = true; }
  /// Seconds of this thread, or of the device's own; from a part of the product, if the whole takes longer than
  /// milliseconds.
  [[nodiscard]] double product_s(const factor_shape& s);
  [[nodiscard]] double flop_s();  ///< of products whose shape does not matter
  [[nodiscard]] double update_s_value(const solver_rule& rule);
  [[nodiscard]] double add_s_value();

 private:
  std::shared_ptr<const device> device_;
  std::map<std::array<std::size_t, 4>, double> flop_s_;  // by shape
  std::optional<double> update_s_value_, add_s_value_;
  bool asks_host_ = false;
};

struct route_plan {
  std::uint64_t batch = 0;  ///< of the train net, on one node
  parameter_routes routes;
  std::map<std::uint64_t, parameter_routes> later;  ///< by the clock from which they hold
  parameter_formats wire;
  std::vector<route_load> loads;          ///< by layer
  std::vector<route_decision> decisions;  ///< empty where nothing was predicted
  std::vector<std::string> reasons;       ///< by layer, for the user; see run_definition
  route_rates rates;
  std::vector<std::string> notes;  ///< for the user
  bool rate_assumed = false;       ///< the choice rests on a link rate that nobody knows
  bool rate_decides = false;       ///< another rate could lead to another choice
};

/// What the actor does, for whoever only wants to know. Times the device for some milliseconds in this thread, if
/// there is a choice.
/// Errors   spec_error, as resolve_train_net and layers_of_option.
[[nodiscard]] route_plan plan_routes(const protocol_selector_setup& setup, device_probe& probe);

class protocol_selector : public actor<protocol_selector> {
 public:
  static constexpr const char* type_name = "protocol_selector";
  using accepts = messages<choose_routes, measure_links, probe_answered, send_rate_measured,
                           routes_changed, shut_down>;
  using sends = messages<routes_chosen, routes_proposed, send_frame>;

  protocol_selector(actor_context context, protocol_selector_setup setup);
  void on(const choose_routes& m);
  void on(const measure_links& m);
  void on(const probe_answered& m);
  void on(const send_rate_measured& m);
  void on(const routes_changed& m);
  void on(const shut_down& m);
  /// Also after a failure: a circle of ports would keep this actor, and its thread, for ever.
  void on_exit() override { reply_ = {}, proposals_ = {}, links_.clear(); }

 private:
  void plan();
  void send(const bandwidth_probe::round& r);

  protocol_selector_setup setup_;
  device_probe device_;
  port<routes_chosen> reply_;
  port<routes_proposed> proposals_;
  std::optional<replanner> replanner_;  // where the rate was measured, and decides
  std::vector<port<send_frame>> links_;
  std::optional<bandwidth_probe> probe_;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::choose_routes)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::measure_links)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::probe_answered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::send_rate_measured)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::routes_proposed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::routes_changed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::routes_chosen)
