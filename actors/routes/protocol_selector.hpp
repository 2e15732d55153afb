// actors/routes/protocol_selector.hpp
//
// Chooses by which route each parameter's gradient goes, and in which format (route_plan.hpp). One per cluster, on
// worker 0. It chooses before the view is sent, and the choice is part of the view: all nodes train with it from the
// first clock on. Where the choice depends on the links' rate and that is not known, it chooses again when all nodes
// have joined and it has timed the links. From then on it hears how fast the links are. It proposes other routes
// where they would save more than the change costs (replanner.hpp).
//
//   chosen <--choose_routes-- idle --choose_routes, rate unknown--> waiting --measure_links--> timing --all heard--> chosen
//
// Where programs compute the gradients (program_routes.hpp), all begin on the server. What the programs have measured comes later,
// with choose_by_offers, and what is chosen by it is proposed.
//
// Accepts  choose_routes   from node   before other nodes can join; again when uneven shares of the batch are known
//          measure_links   from node   once, if routes_chosen had needs_rate
//          probe_answered  from node   a peer has received a round of probes
//          choose_by_offers from node   once, where programs compute the gradients
//          send_rate_measured    from node   the rate of a node's links, a few times a second
//          routes_changed  from node   all nodes train with the proposed routes
//          shut_down       from node
// Sends    routes_chosen   to node
//          routes_proposed to node
//          send_frame      to network_link   probes
// State    the request, the timings of this device, the current round of probes.
// Fails    never by exception: why the net cannot do what --routes asks for is part of the answer.
// Detached: it opens data sources for the shapes of their samples, and times this device.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/routes/bandwidth_probe.hpp"
#include "actors/routes/program_routes.hpp"
#include "actors/routes/replanner.hpp"
#include "actors/routes/route_plan.hpp"
#include "messages/link.hpp"
#include "messages/training.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

struct routes_chosen {
  std::uint64_t batch = 0;    ///< of the train net, on one node
  bool needs_rate = false;    ///< chosen with an assumed rate: it expects measure_links
  bool follow_links = false;  ///< it proposes other routes when nodes report other rates
  parameter_routes routes;
  std::map<std::uint64_t, parameter_routes> later;  ///< by the clock from which they hold
  parameter_formats wire;
  std::vector<route_decision> decisions;  ///< empty where nothing was predicted
  std::vector<std::string> reasons;       ///< by layer, for the user; see run_definition
  std::vector<std::string> notes;         ///< for the user
  std::string error;                      ///< empty: none
};

/// protocol_selector -> node: these routes are faster now.
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

/// node -> protocol_selector: the programs of all workers have measured.
struct choose_by_offers {
  factors_offered all;
};

/// node -> protocol_selector: links to all other nodes, which are idle.
struct measure_links {
  std::vector<port<send_frame>> links;
  bool within_machine = false;  ///< all of them are loopback
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
  std::uint64_t clocks_left = 0;
};

/// node -> protocol_selector: the proposed routes hold.
struct routes_changed {
  std::chrono::milliseconds paused{};  ///< training, for the change
};

class protocol_selector : public actor<protocol_selector> {
 public:
  static constexpr const char* type_name = "protocol_selector";
  using accepts = messages<choose_routes, measure_links, probe_answered, choose_by_offers,
                           send_rate_measured, routes_changed, shut_down>;
  using sends = messages<routes_chosen, routes_proposed, send_frame>;

  protocol_selector(actor_context context, route_request setup);
  void on(const choose_routes& m);
  void on(const measure_links& m);
  void on(const probe_answered& m);
  void on(const choose_by_offers& m);
  void on(const send_rate_measured& m);
  void on(const routes_changed& m);
  void on(const shut_down& m);

 private:
  void plan();
  void plan_net(routes_chosen& answer);
  void plan_program(routes_chosen& answer) const;
  [[nodiscard]] bool follows_links(bool choice) const;
  void send(const bandwidth_probe::round& r);

  route_request setup_;
  device_probe device_;
  until_end<choose_routes> asked_{this};
  std::optional<replanner> replanner_;  // where the measured rate decides the choice
  std::optional<replanner> next_;       // once what was proposed to a program holds
  std::optional<program_plan> program_;
  until_end<measure_links> timed_{this};  // empty while no links are timed
  std::optional<bandwidth_probe> probe_;
  bool within_machine_ = false;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::choose_routes)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::choose_by_offers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::measure_links)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::probe_answered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::send_rate_measured)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::routes_proposed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::routes_changed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::routes_chosen)
