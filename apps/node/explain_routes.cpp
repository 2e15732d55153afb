// apps/node/explain_routes.cpp - --explain-routes: part of run_setup.hpp.
#include "actors/routes/route_plan.hpp"
#include "apps/node/run_setup.hpp"
#include "apps/node/start_checks.hpp"

#include <cstdio>

namespace poseidon::app {

int explain_routes(const node_options& o) {
  route_request s;
  s.run = read_run(o);
  (void)take_survive(s.run, o);
  s.node = node_of(o);
  s.option = parse_routes(o.routes, o.rank);
  s.wire = parse_wire(o.wire);
  s.lossy = parse_lossy(o.lossy);
  s.link_mbit_s = node_mbit_s(o);
  s.explain = true;
  device_probe probe(s.node.compute->arithmetic());
  const auto plan = plan_routes(s, probe);
  if (o.explain_routes == "json") {
    auto routes = routes_json(plan.decisions, plan.rates);
    if (plan.ladder) routes.put("ladder", ladder_json(*plan.ladder));
    std::printf("%s\n", routes.text().c_str());
    return 0;
  }
  std::fputs(routes_table(plan.decisions, plan.rates).c_str(), stdout);
  if (plan.ladder) std::fputs(ladder_table(*plan.ladder, plan.rates).c_str(), stdout);
  for (const auto& note : plan.notes) std::printf("%s\n", note.c_str());
  if (s.link_mbit_s <= 0)
    std::printf(
        "The links' rate is assumed (--routes auto:1000 names one of 1000 Mbit/s); a run measures "
        "it "
        "when all nodes are in.\n");
  return 0;
}

}  // namespace poseidon::app
