#include "actors/node/assembly.hpp"

#include "actors/membership/view_rules.hpp"
#include "actors/node/link_bindings.hpp"
#include "actors/node/node.hpp"
#include "actors/run/view_shares.hpp"
#include "models/words.hpp"

#include <utility>

namespace poseidon {

void assembly::build(const std::vector<route_decision>& decisions) {
  const auto& setup = core_.setup;
  const auto& view = core_.view();
  core_.change.builds(true);
  core_.run.build(view.self());
  note_batch();
  core_.run.describe(view.members);
  spawn_graph();
  telemetry_ = poseidon::spawn<telemetry>(core_.as_node.system(), *setup.edges, thread_kind::own,
                                          "telemetry",
                                          telemetry_setup{.self = view.seat,
                                                          .trace = setup.records.trace,
                                                          .edges = setup.edges,
                                                          .view = setup.records.view,
                                                          .trace_file = setup.records.trace_file,
                                                          .graph_file = setup.records.graph_file,
                                                          .recording = setup.records.recording});
  core_.run.show_facts(view, decisions, core_.change, core_.kept);
}

void assembly::rebuild() {
  for (const auto& line : describe_shares()) core_.setup.display->detail(line);
  spawn_graph();
  // Decisions were for other routes.
  core_.run.show_facts(core_.view(), {}, core_.change, core_.kept);
  core_.change.builds(core_.begins());
}

/// The leader says all of them, the others their own.
std::vector<std::string> assembly::describe_shares() const {
  std::vector<std::string> out;
  const auto& of_view = core_.run.compiled().shares;
  const auto& shares = of_view.empty() ? core_.setup.run->shares : of_view;
  const auto& view = core_.view();
  for (std::uint32_t w = 0; w < shares.size(); ++w) {
    const auto& share = shares[w];
    const bool own = worker_id{w} == view.self();
    if (view.leads() || own)
      out.push_back("batch: " + (own ? "this node" : view.name_of(view.seat_of(worker_id{w}))) +
                    "\'s share " + describe_share(samples_of_clock(share), samples_of_all(shares)) +
                    (share.passes > 1 ? ", in " + std::to_string(share.passes) + " passes" : "") +
                    (share.replicas > 1 ? ", on " + plural(share.replicas, "replica") : ""));
  }
  return out;
}

void assembly::note_batch() const {
  const auto& setup = core_.setup;
  if (const auto kept = global_batch_of(*setup.run); kept > 0)
    setup.display->note("batch: " + plural(static_cast<std::size_t>(kept), "sample") +
                        " an iteration, however many nodes take part (--global-batch keep)");
  for (const auto& line : describe_shares()) setup.display->note(line);
}

void assembly::spawn_graph() {
  const auto& setup = core_.setup;
  const auto& view = core_.view();
  const auto self = core_.as_node.self();
  binding_.clear();
  for (const auto& a :
       core_.run.spawn({.system = core_.as_node.system(),
       .edges = *setup.edges,
       .trace = *setup.records.trace,
       .self = core_.view().self(),
       .leader = worker_id{0},
       .has_budget = setup.cluster.budget_mbit_s > 0,
       .display = setup.display,
       .node_stop = self,
       .node_done = self,
       .node_failed = self,
       .node_goes_on = self,
       .node_held = self,
       .node_paused = self,
       .node_gave_up = self,
       .node_offered = self,
       .before = core_.run.before(core_.kept),
       .carried = [view = setup.records.view] { return view->own().carried(); },
       .epoch = core_.view().epoch,
       .seats = view.members.empty() ? seat_list{view.seat} : seats_of(view.members),
       .comes = view.brought(view.seat),
       .lacks_values = has_seat(view.lacking, view.seat)}))
    core_.as_node.monitor(a);
}

bool assembly::is_building() const {
  return core_.change.is_in(during(node_stage::building, node_stage::rebuilding));
}

bool assembly::bind_if_complete() {
  if (!is_building() || !core_.run.built() || !core_.members.is_complete()) return false;
  binding_ = peers();
  bind_witnesses();
  if (binding_.empty()) {
    connect();
    return true;
  }
  const auto c = context();
  for (const auto seat : binding_)
    core_.as_node.tell<bind_link>(core_.members.links().at(seat), {binding_to(seat, c)});
  return false;
}

/// Nothing but control frames goes to a witness, and nobody waits until its link is bound.
void assembly::bind_witnesses() {
  for (const auto& w : core_.view().witnesses)
    core_.as_node.tell<bind_link>(core_.members.links().at(w.seat), {control_binding(w.seat)});
}

std::shared_ptr<const link_binding> assembly::control_binding(seat_id peer) const {
  const auto& view = core_.view();
  auto b = std::make_shared<link_binding>();
  b->self = {view.seat, view.epoch};
  b->peer = peer;
  b->worker = view.worker_of(peer);
  b->routes.control = core_.as_node.self();
  b->routes.lost = core_.as_node.self();
  // It showed the run before it left: the others report until they have heard that.
  b->limits.watches = core_.setup.records.shows && view.self() == no_worker;
  b->may_be_lost = view.has_witness(peer);
  return b;
}

/// The members, and those that have just left: their solver state is still to come. One that is lost may have dialed again, before
/// it has heard that it is.
std::set<seat_id> assembly::peers() const {
  const auto& view = core_.view();
  std::set<seat_id> out;
  for (const auto& [seat, link] : core_.members.links())
    if (view.has(seat) || (view.had(seat) && !has_seat(view.lost, seat))) out.insert(seat);
  return out;
}

binding_context assembly::context() const {
  const auto& setup = core_.setup;
  const auto self = core_.as_node.self();
  const bool shows = setup.records.shows && core_.view().leads();
  return {.view = core_.view(),
          .run = *setup.run,
          .compiled = core_.run.compiled(),
          .parameters = core_.run.graph().parameters(),
          .control = self,
          .bound = self,
          .lost = self,
          .flow = self,
          .reports = shows ? port<report_arrived>(telemetry_) : port<report_arrived>(),
          .before = core_.run.before(core_.kept),
          .around = setup.around,
          .shared = core_.run.graph().lasting().the_caller};
}

bool assembly::bound(seat_id peer, std::uint64_t epoch) {
  if (epoch != core_.view().epoch) return false;  // of a view that another one has replaced
  if (!is_building()) return false;
  if (binding_.erase(peer) == 0 || !binding_.empty()) return false;
  connect();
  return true;
}

/// What this node still says belongs to the view that has begun without it.
void assembly::part() {
  for (const auto& [seat, link] : core_.members.links())
    core_.as_node.tell<bind_link>(link, {control_binding(seat)});
}

/// The parameters may be cut again, or go back, only when no link reads into them any more.
std::set<seat_id> assembly::silence() {
  const auto out = peers();
  const auto c = context();
  for (const auto seat : out) {
    auto b = std::make_shared<link_binding>(*binding_to(seat, c));
    b->between_views = b->goes_back = true;
    b->landing.reset();
    b->gate.reset();
    core_.as_node.tell<bind_link>(core_.members.links().at(seat), {std::move(b)});
  }
  return out;
}

void assembly::connect() {
  core_.run.graph().connect(core_.members.ports());
  connect_telemetry t;
  t.links = core_.members.ports();
  const auto& view = core_.view();
  if (!view.leads()) t.to_leader = t.links.front();
  t.shows = core_.setup.records.shows && view.leads();
  t.watched = core_.watched;
  t.epoch = view.epoch;
  core_.as_node.tell<connect_telemetry>(telemetry_, std::move(t));
  core_.change.stands();
  core_.setup.display->detail("membership: links to " + plural(view.others().size(), "node") +
                              " and all actors stand; waiting for the others");
}

void assembly::end() {
  core_.as_node.tell<shut_down>(telemetry_, {});
  telemetry_ = {};
}

}  // namespace poseidon
