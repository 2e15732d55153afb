#include "actors/node/training_graph.hpp"

#include "actors/parameters/handover.hpp"
#include "actors/run/view_shares.hpp"
#include "models/files/snapshot.hpp"
#include "models/net/side_branches.hpp"
#include "models/plan/lowrank_routes.hpp"

namespace poseidon {

namespace {

/// By worker, then pass of a clock: micro-batches, each with its replicas.
factor_rows factor_rows_of(const run_definition& spec, const compiled_run& run, std::size_t layer) {
  const auto rows = factors_of(run.train.graph, layer).rows;
  if (!spec.declared.empty()) return factor_rows(spec.workers, {rows});
  const auto schedule = schedule_of(spec, run);
  factor_rows out;
  for (std::size_t w = 0; w < spec.workers; ++w) {
    auto& passes = out.emplace_back();
    if (schedule.shares.empty()) {
      passes.assign(std::size_t{run.micro_batches} * run.replicas, rows);
      continue;
    }
    const auto& share = schedule.shares[w];
    for (std::uint32_t m = 0; m < share.passes; ++m)
      for (std::uint32_t r = 0; r < share.replicas; ++r)
        passes.push_back(rows / run.train.batch * samples_of(share, r));
  }
  return out;
}

/// How many means over a batch of the net the sum of a clock's gradients is worth. Where passes are weighed, a pass is worth its
/// part of such a batch.
double batches_of(const run_definition& spec, const compiled_run& run) {
  if (run.shares.empty()) return static_cast<double>(spec.workers * run.micro_batches);
  return static_cast<double>(samples_of_all(run.shares)) / static_cast<double>(run.whole_batch);
}

/// By group.
std::map<std::size_t, lowrank_route> lowrank_routes_of(const learned_parameters& list,
                                                       const run_definition& spec,
                                                       const net& train) {
  const auto routes = routes_of_layers(train, spec.routes);
  const auto owners = lowrank_owners(train, spec.routes, spec.workers);
  std::map<std::size_t, lowrank_route> out;
  for (std::size_t g = 0; g < list.groups.size(); ++g) {
    const std::size_t layer = value(list.groups[g].first);
    if (const auto by = routes[layer]; rank_of(by) > 0)
      out[g] = {lowrank_shape_of(train, layer, rank_of(by)), lowrank_bytes_of(train, layer, by),
                is_rounded(by), owners[layer]};
  }
  return out;
}

/// Where the kernels of each replica write the gradients that are sent as such or by low rank.
void find_gradients(const compiled_run& run, parameter_graph_setup& s) {
  for (const auto& replica : run.train.replicas) {
    auto& of_replica = s.gradients.emplace_back(s.list.parameters.size());
    for (std::size_t g = 0; g < s.list.groups.size(); ++g)
      if (s.by_factors.count(g) == 0)
        for (const auto p : s.list.groups[g].learned) of_replica[p] = replica->gradient(value(p));
  }
}

/// Caffe's files. They have a net of their own: the checkpointer may still write when the next view's net is compiled.
snapshot_files files_of(const net& train, snapshot_format format) {
  const auto own = std::make_shared<const net>(train);
  return {[own, format](const std::string& stem, const parameter_arrays& values) {
            write_weights(stem, format, *own, values);
          },
          [own, format](const std::string& stem, const solver_state& state) {
            write_state(stem, format, *own, state);
          },
          {}};
}

/// What the owner and the keepers of each chunk wait for in the first clock of a view.
by_id<chunk_id, std::size_t> awaited_state(const graph_context& context, const run_definition& spec,
                                           const node_spec& node, const compiled_run& run) {
  by_id<chunk_id, std::size_t> out;
  const auto arrays = state_arrays_at(spec, spec.first_clock);
  if (context.before == nullptr || arrays == 0) return out;
  const auto& cut = run.store->cut();
  for (const auto id : cut.chunks.ids())
    out.push_back(
        state_values(run.train.graph, *context.before, cut, id, arrays, node.compute->computes()));
  return out;
}

parameter_graph_setup setup_of(const graph_context& context, const run_definition& spec,
                               const node_spec& node, const compiled_run& run,
                               std::shared_ptr<overlap_meter> overlap,
                               const std::shared_ptr<program>& from) {
  const auto& train = run.train.graph;
  parameter_graph_setup s;
  s.self = context.self;
  s.workers = spec.workers;
  s.staleness = staleness_of(spec);
  s.epoch = context.epoch;
  s.first_clock = clock_id{spec.first_clock};
  s.solver = spec.solver.spec;
  s.update = update_of(spec);
  s.list = learned_parameters_of(train);
  if (from == nullptr && spec.workers > 1) s.run_ahead = groups_that_run_ahead(train);
  for (std::size_t g = 0; g < s.list.groups.size(); ++g)
    if (const auto layer = value(s.list.groups[g].first); run.by_factors[layer])
      s.by_factors[g] = {factors_of(train, layer), factor_rows_of(spec, run, layer)};
  s.by_lowrank = lowrank_routes_of(s.list, spec, train);
  s.seed = spec.seed;
  s.memories = context.lasting.memories;
  s.replicas = run.replicas;
  s.micro_batches = run.micro_batches;
  s.passes_added = run.passes_added;
  if (from != nullptr) {
    s.lent.assign(from->lent.begin(), from->lent.end());
    s.places = from->places;
    s.first_state = from->first_state;
  }
  s.batches = batches_of(spec, run);
  s.own = run.own;
  s.passes_per_update = run.own ? passes_of_iteration(spec.solver) : 0;
  // Where passes are weighed, all replicas of a node together make one mean.
  s.means = run.shares.empty() ? run.replicas : 1;
  if (from == nullptr) s.passes = schedule_of(spec, run).passes_per_clock();
  s.passes_overlap = passes_overlap(spec, run);
  // At staleness 0 all nodes wait for every chunk: the one that is needed first goes first.
  s.by_magnitude = context.has_budget && s.staleness > 0;
  if (from == nullptr) find_gradients(run, s);
  s.arithmetic = node.compute->arithmetic();
  s.computes = node.compute->computes();
  s.host_memory = node.compute->host_memory();
  s.store = run.store;
  s.awaited_state = awaited_state(context, spec, node, run);
  s.survive = spec.survive;
  s.updates = run.updates;
  s.overlap = std::move(overlap);
  s.display = context.display;
  s.files = files_of(train, spec.solver.spec.snapshot_format());
  if (from != nullptr)
    s.files.take_state = [from](solver_state state) { from->state.put(std::move(state)); };
  s.checkpoints = context.lasting.checkpoints;
  return s;
}

graph_context with(graph_context context, std::shared_ptr<overlap_meter> overlap) {
  context.lasting.overlap = std::move(overlap);
  return context;
}

}  // namespace

training_graph::training_graph(const graph_context& context, const run_definition& spec,
                               const node_spec& node, compiled_run& run,
                               std::shared_ptr<program> from)
    : spawner_(context.system, context.edges, context.trace),
      overlap_(context.lasting.overlap ? context.lasting.overlap
                                       : std::make_shared<overlap_meter>(run.replicas)),
      parameters_(spawner_, setup_of(context, spec, node, run, overlap_, from)) {
  overlap_->begin_anew();
  const auto inside = with(context, overlap_);
  if (from == nullptr)
    replicas_.emplace(inside, spawner_, spec, node, run, parameters_);
  else
    callers_.emplace(inside, spawner_, spec, std::move(from), parameters_);
}

void training_graph::connect(const std::vector<port<send_frame>>& links) {
  if (replicas_) {
    parameters_.connect(links, replicas_->readers(), replicas_->the_solver());
    replicas_->connect(links);
  } else {
    parameters_.connect(links, std::vector<group_readers>(parameters_.groups()),
                        callers_->the_caller());
    callers_->connect(links);
  }
}

lasting_actors training_graph::lasting() const {
  lasting_actors out;
  if (replicas_)
    out.the_solver = replicas_->the_solver();
  else
    out.the_caller = callers_->the_caller();
  out.checkpoints = parameters_.checkpoints();
  out.overlap = overlap_;
  out.memories = parameters_.memories();
  return out;
}

std::vector<port<shut_down>> training_graph::passing() const {
  std::vector<port<shut_down>> out;
  for (const auto& a : all())
    if (a.target() != the_trainer().end.target() &&
        a.target() != port<shut_down>(parameters_.checkpoints()).target())
      out.push_back(a);
  return out;
}

}  // namespace poseidon
