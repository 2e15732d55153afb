#include "actors/node/assembly.hpp"

#include "actors/node/link_bindings.hpp"
#include "actors/node/node.hpp"
#include "models/words.hpp"

#include <utility>

namespace poseidon {

void assembly::build(const std::vector<route_decision>& decisions) {
  const auto& setup = core_.setup;
  const auto& view = core_.view();
  core_.phase = run_phase::building;
  core_.run.build(view.self);
  note_shares();
  core_.run.describe();
  spawn_graph();
  telemetry_ = poseidon::spawn<telemetry>(
      core_.as_node.system(), *setup.edges, thread_kind::own, "telemetry",
      telemetry_setup{view.self, view.leader, setup.records.trace, setup.edges, setup.records.view,
                      setup.records.shows && view.leads() && setup.run->workers > 1, core_.watched,
                      setup.records.trace_file, setup.records.graph_file, setup.records.recording});
  core_.run.show_facts(view, decisions, core_.change);
}

void assembly::rebuild() {
  spawn_graph();
  core_.run.show_facts(core_.view(), {}, core_.change);  // decisions were for other routes
  core_.phase = run_phase::rebuilding;
}

/// The leader says all of them, the others their own.
void assembly::note_shares() const {
  const auto& shares = core_.setup.run->shares;
  const auto& view = core_.view();
  const auto each = core_.run.compiled().micro_batches;
  for (std::uint32_t w = 0; w < shares.size(); ++w) {
    const bool own = worker_id{w} == view.self;
    if (view.leads() || own)
      core_.setup.display->note(
          "batch: " + (own ? "this node" : view.name_of(worker_id{w})) + "\'s share " +
          describe_share(shares[w].samples * each, samples_of_all(shares) * each) +
          (shares[w].replicas > 1 ? ", on " + plural(shares[w].replicas, "replica") : ""));
  }
}

void assembly::spawn_graph() {
  const auto& setup = core_.setup;
  const auto self = core_.as_node.self();
  links_bound_ = 0;
  for (const auto& a :
       core_.run.spawn({core_.as_node.system(),
                        *setup.edges,
                        *setup.records.trace,
                        core_.view().self,
                        core_.view().leader,
                        setup.cluster.budget_mbit_s > 0,
                        setup.display,
                        self,
                        self,
                        self,
                        self,
                        self,
                        self,
                        {},
                        [view = setup.records.view] { return view->own().carried(); }}))
    core_.as_node.monitor(a);
}

bool assembly::bind_if_complete() {
  const auto& setup = core_.setup;
  const auto& links = core_.members.links();
  const bool builds = core_.phase == run_phase::building || core_.phase == run_phase::rebuilding;
  if (!builds || !core_.run.built() || links.size() + 1 < setup.run->workers) return false;
  if (links.empty()) {
    connect();
    return true;
  }
  const auto self = core_.as_node.self();
  binding_context c{core_.view(),
                    *setup.run,
                    core_.run.compiled(),
                    core_.run.graph().parameters(),
                    self,
                    self,
                    self,
                    self,
                    {},
                    core_.change.before()};
  if (setup.records.shows && core_.view().leads()) c.reports = telemetry_;
  for (const auto& [worker, link] : links)
    core_.as_node.tell<bind_link>(link, {binding_to(worker, c)});
  return false;
}

bool assembly::bound() {
  if (core_.phase != run_phase::building && core_.phase != run_phase::rebuilding) return false;
  if (++links_bound_ != core_.members.links().size()) return false;
  connect();
  return true;
}

void assembly::connect() {
  auto ports = core_.members.ports(core_.setup.run->workers);
  core_.run.graph().connect(ports);
  core_.as_node.tell<connect_telemetry>(telemetry_, {std::move(ports)});
  core_.phase = core_.phase == run_phase::building ? run_phase::waiting : run_phase::resuming;
  core_.setup.display->detail("membership: links to " +
                              plural(core_.members.links().size(), "node") +
                              " and all actors stand; waiting for the others");
}

void assembly::end() {
  core_.as_node.tell<shut_down>(telemetry_, {});
  telemetry_ = {};
}

}  // namespace poseidon
