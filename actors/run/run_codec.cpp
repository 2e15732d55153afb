#include "actors/run/run_codec.hpp"

#include "actors/run/view_shares.hpp"

namespace poseidon {

frames::view view_of(const run_definition& run) {
  frames::view v;
  v.epoch = 1;
  if (run.declared.empty())
    v.solver = self_contained(run.solver).SerializeAsString();  // the nets are inside
  for (std::size_t i = 0; i < run.declared.size(); ++i) {
    const auto& p = run.declared[i];
    const bool known = i < run.first_digests.size();
    v.parameters.push_back(
        {p.name, p.shape, p.given, known ? run.first_digests[i] : frames::byte_digest{}, p.bundle});
  }
  v.shared = run.shared;
  v.takes_newcomers = run.takes_newcomers;
  v.optimizer = run.optimizer;
  v.seed = run.seed;
  v.first_clock = clock_id{run.first_clock};
  v.first_sample = run.data.samples;
  v.test_phases = run.data.test_phases;
  for (const auto r : run.routes) v.routes.push_back(static_cast<std::uint8_t>(r));
  for (const auto f : run.wire) v.wire.push_back(static_cast<std::uint8_t>(f));
  v.reasons = run.reasons;
  v.routes_follow_links = run.routes_follow_links;
  v.survive = run.survive;
  v.zeroes_lost_state = run.zeroes_lost_state;
  v.state_zeroed_at = run.state_zeroed_at;
  v.kinds = run.kinds;
  v.data_sets = run.data_sets;
  for (const auto& s : run.shares) v.shares.push_back({s.samples, s.replicas});
  return v;
}

node_shares shares_told(const std::vector<frames::share>& shares, const solver_file& solver) {
  node_shares out;
  for (const auto& s : shares) out.push_back({s.samples, s.replicas, passes_of(solver)});
  return out;
}

namespace {

solver_file solver_of(const frames::view& v) {
  ::caffe::SolverParameter solver;
  if (!solver.ParseFromString(v.solver))
    throw std::invalid_argument("the solver that worker 0 sent (" +
                                std::to_string(v.solver.size()) +
                                " bytes) cannot be read. Is its program of another version?");
  // Positions in files are not sent: messages name the layer and the node that has the file.
  return resolve_solver(solver, {"the solver of worker 0", 0});
}

}  // namespace

run_definition run_of(const frames::view& v) {
  run_definition run;
  if (v.parameters.empty()) run.solver = solver_of(v);
  for (const auto& p : v.parameters) {
    run.declared.push_back({p.name, p.dims, p.given, p.bundle});
    run.first_digests.push_back(p.first);
  }
  run.shared = v.shared;
  run.takes_newcomers = v.takes_newcomers;
  run.given = v.given;
  run.optimizer = v.optimizer;
  run.seed = v.seed;
  run.first_clock = value(v.first_clock);
  run.data = {v.first_sample, v.test_phases};
  run.workers = v.members.size();
  for (const auto r : v.routes) run.routes.push_back(static_cast<route>(r));
  for (const auto f : v.wire) run.wire.push_back(static_cast<wire_format>(f));
  run.reasons = v.reasons;
  run.routes_follow_links = v.routes_follow_links;
  run.survive = v.survive;
  run.zeroes_lost_state = v.zeroes_lost_state;
  run.state_zeroed_at = v.state_zeroed_at;
  run.kinds = v.kinds;
  run.data_sets = v.data_sets;
  run.shares = shares_told(v.shares, run.solver);
  return run;
}

}  // namespace poseidon
