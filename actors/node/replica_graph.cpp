#include "actors/node/replica_graph.hpp"

#include "actors/core/actor_names.hpp"
#include "actors/run/view_shares.hpp"
#include "data/sample_schedule.hpp"

#include <algorithm>

namespace poseidon {

bool passes_overlap(const run_definition& spec, const compiled_run& run) {
  return run.replicas > 1 && (run.micro_batches > 1 || staleness_of(spec) > 0);
}

replica_graph::replica_graph(const graph_context& context, actor_spawner& spawner,
                             const run_definition& spec, const node_spec& node, compiled_run& run,
                             const parameter_graph& parameters)
    : context_(context),
      spawner_(spawner),
      spec_(spec),
      node_(node),
      run_(run),
      parameters_(parameters),
      groups_(parameter_groups(run.train.graph)),
      solver_(context.lasting.the_solver),
      debug_(make_debug_info()) {
  spawn_solver();
  spawn_streams();
  train_ = spawn_net({run_.train});
  for (std::size_t t = 0; t < run_.tests.size(); ++t)
    tests_.push_back(spawn_net({run_.tests[t], static_cast<std::int32_t>(t)}));
}

void replica_graph::spawn_solver() {
  if (solver_) return spawner_.adopt(solver_);
  solver_setup s;
  s.part = part_of_view();
  for (const auto& group : groups_)
    if (!group.learned.empty()) ++s.layers_that_learn;
  s.spec = spec_.solver.spec;
  s.barrier = s.spec.poseidon().replay().fifo();
  s.test_phases = spec_.data.test_phases;
  s.overlap = context_.lasting.overlap;
  s.display = context_.display;
  s.carried = context_.carried;
  solver_ = spawner_.start<solver>(thread_kind::shared, "solver", std::move(s));
}

solver_part replica_graph::part_of_view() const {
  solver_part s;
  s.self = context_.self;
  s.leader = context_.leader;
  s.workers = spec_.workers;
  s.replicas = run_.replicas;
  s.micro_batches = run_.micro_batches;
  const auto schedule = schedule_of(spec_, run_);
  s.images_per_clock = samples_of_node(run_);
  s.images_of_all = schedule.samples_per_clock();
  // A node's pass against the mean number of samples that a node has per pass of this one: the mean over the nodes is then that
  // over all samples.
  for (std::uint32_t r = 0; !run_.shares.empty() && r < run_.replicas; ++r)
    s.weights.push_back(
        static_cast<double>(run_.train.batch_of(r) * spec_.workers * run_.micro_batches) /
        static_cast<double>(s.images_of_all));
  s.epoch = context_.epoch;
  s.first_clock = spec_.first_clock;
  // Its gradients of a clock are of a version that is `staleness` older at most.
  if (spec_.survive > 0 && spec_.workers > 1) s.floor_lag = 1 + staleness_of(spec_);
  s.first_sample = [schedule, self = std::uint64_t{value(context_.self)}](
                       std::uint64_t clock, std::uint32_t micro, std::uint32_t replica) {
    return first_sample(schedule, {clock, self, micro, replica});
  };
  return s;
}

void replica_graph::spawn_streams() {
  for (std::uint32_t r = 0; r < run_.replicas; ++r) {
    stream_setup s;
    s.enter_thread = [compute = node_.compute] { compute->arithmetic()->enter_thread(1); };
    s.first_nonfinite = [copy = run_.train.replicas[r]] { return copy->first_nonfinite(); };
    s.solver = solver_;
    s.overlap = context_.lasting.overlap;
    s.trace = spawner_.lane(replica_name("stream compute", r));
    if (node_.compute->is_asynchronous()) {
      s.copies = std::make_shared<copies_in_flight>();
      spawn_copy_out(r, s.copies);
      spawn_copy_in(r);
      s.copy_out = copies_out_.back();
    }
    streams_.push_back(
        spawner_.start<stream>(thread_kind::own, replica_name("stream compute", r), std::move(s)));
  }
}

void replica_graph::spawn_copy_out(std::uint32_t replica,
                                   std::shared_ptr<copies_in_flight> copies) {
  copy_out_setup s;
  s.copies = std::move(copies);
  s.enter_thread = [compute = node_.compute] { compute->arithmetic()->enter_thread(1); };
  s.first_nonfinite = [copy = run_.train.replicas[replica]] { return copy->first_nonfinite(); };
  s.solver = solver_;
  s.trace = spawner_.lane(replica_name("copy_out", replica));
  copies_out_.push_back(
      spawner_.start<copy_out>(thread_kind::own, replica_name("copy_out", replica), std::move(s)));
}

void replica_graph::spawn_copy_in(std::uint32_t replica) {
  stream_setup s;
  s.enter_thread = [compute = node_.compute] { compute->arithmetic()->enter_thread(1); };
  s.overlap = context_.lasting.overlap;
  copies_in_.push_back(spawner_.start<stream>(
      thread_kind::own, replica_name("stream copy_in", replica), std::move(s)));
}

replica_graph::net_actors replica_graph::spawn_net(const net_place& n) {
  const auto& c = n.compiled;
  net_actors out;
  out.layers.resize(run_.replicas);
  out.sources.resize(run_.replicas);
  for (std::uint32_t r = 0; r < run_.replicas; ++r) {
    for (std::size_t l = 0; l < c.graph.layers.size(); ++l)
      out.layers[r].push_back(spawner_.start<layer>(
          thread_kind::shared, layer_name(c.graph.layers[l].name, r, n.test_net),
          layer_setup_of(n, r, l)));
    for (std::size_t d = 0; d < c.data_layers.size(); ++d) {
      const auto name = source_name(c.graph.layers[c.data_layers[d]].name, r, n.test_net);
      auto s = source_setup_of(n, r, d);
      s.trace = spawner_.lane(name);
      out.sources[r].push_back(spawner_.start<data_source>(thread_kind::own, name, std::move(s)));
    }
  }
  return out;
}

layer_setup replica_graph::layer_setup_of(const net_place& n, std::uint32_t replica,
                                          std::size_t l) const {
  auto& c = n.compiled;
  const auto& from = c.graph.layers[l];
  const bool is_asynchronous = node_.compute->is_asynchronous();
  layer_work_setup w;
  w.place = {replica_id{replica}, l, spawner_.keep(from.name), n.test_net};
  w.compiled = c.replicas[replica];
  w.compute = &c.replicas[replica]->at(l);
  w.seed = spec_.seed;
  for (std::size_t d = 0; d < c.data_layers.size(); ++d)
    if (c.data_layers[d] == l) w.fed = &c.fed[replica][d];
  w.runs_backward = runs_backward(c.graph, from);
  layer_setup s;
  s.is_source = is_source(from);
  s.stream = streams_[replica];
  // Test nets read what their train net has; with pins the stream decides when a pass begins.
  if (is_asynchronous && n.training() && run_.pins.empty()) s.copy_in = copies_in_[replica];
  s.outputs = solver_;
  s.issued = solver_;
  if (n.training()) {
    s.staleness = staleness_of(spec_);
    if (run_.own) {
      w.iterations = iterations_per_clock(spec_.solver.spec);
      w.passes_per_iteration = s.passes_per_update = passes_of_iteration(spec_.solver);
    }
    w.passes_after = passes_after_of(replica);
    if (debug_ != nullptr && replica == 0)
      w.inspect = [debug = debug_, l](const pass_id& p, bool backward) {
        backward ? debug->backward(l, value(p.clock)) : debug->forward(l, value(p.clock));
      };
  }
  if (!from.parameters.empty()) set_exchange(s, w, n);
  set_outputs(s, w, n);
  s.work = make_layer_work(std::move(w), is_asynchronous);
  return s;
}

std::function<std::uint64_t(std::uint32_t)> replica_graph::passes_after_of(
    std::uint32_t replica) const {
  if (!run_.own)
    return [schedule = schedule_of(spec_, run_), self = std::uint64_t{value(context_.self)},
            replica](std::uint32_t micro) {
      return passes_after(schedule, {0, self, micro, replica});
    };
  // This node updates its running statistics alone, after each iteration.
  const std::uint64_t passes = passes_of_iteration(spec_.solver);
  return
      [schedule = sample_schedule{1, passes, run_.replicas}, passes, replica](std::uint32_t micro) {
        return passes_after(schedule, {0, 0, micro % passes, replica});
      };
}

/// How a layer with parameters learns: which version it waits for, and how its gradient leaves it.
void replica_graph::set_exchange(layer_setup& s, layer_work_setup& w, const net_place& n) const {
  const auto l = w.place.index;
  const auto group = group_of(n.compiled.graph.layers[l].name);
  if (!group) return;
  const auto replica = value(w.place.replica);
  const auto& learned = groups_[*group].learned;
  s.waits_for = learned.empty() ? parameter_wait::any : parameter_wait::of_its_clock;
  if (!run_.pins.empty() || (run_.own && n.training())) w.pin = pinning(n, l, replica);
  if (!n.training() || !groups_[*group].is_writer(l)) return;
  w.contribute = contribution(*group, l, replica);
  auto& gradient = s.gradient.emplace();
  if (node_.compute->is_asynchronous()) gradient.reuse = gradient_reuse::when_copied;
  if (parameters_.on_factors(*group)) return;  // each pass's factors have a place of their own
  gradient.passes_added = run_.passes_added;
  if (passes_overlap(spec_, run_)) gradient.reuse = gradient_reuse::when_summed;
  if (!learned.empty()) w.copy_phase = copy_phase_of(run_, learned.front(), replica);
}

void replica_graph::set_outputs(layer_setup& s, layer_work_setup& w, const net_place& n) const {
  const auto& c = n.compiled;
  for (const auto& reader : c.readers) {
    if (reader.layer != w.place.index) continue;
    s.first_output = static_cast<std::uint32_t>(reader.first);
    w.outputs.read = [copy = w.compiled, &c, reader] {
      return read_outputs(c.graph, *copy, reader);
    };
    w.outputs.compute = [reader](const auto& values) { return make_outputs(reader, values); };
    w.outputs.blobs = reader.blobs;
  }
}

data_source_setup replica_graph::source_setup_of(const net_place& n, std::uint32_t replica,
                                                 std::size_t d) const {
  const auto& c = n.compiled;
  data_source_setup s;
  s.source = c.sources[d];
  s.memory = node_.compute->host_memory();
  s.batch = c.batch_of(replica);
  s.readers = run_.readers;
  s.name = spawner_.keep(c.graph.layers[c.data_layers[d]].name);
  s.node = context_.node_failed;
  s.first_sample = first_samples(n, replica);
  return s;
}

/// First sample of the n-th pass that a data source of this replica is asked for.
std::function<std::uint64_t(std::uint64_t)> replica_graph::first_samples(
    const net_place& n, std::uint32_t replica) const {
  if (n.training())
    return [schedule = schedule_of(spec_, run_), self = std::uint64_t{value(context_.self)},
            replica](std::uint64_t pass) {
      const auto micro = schedule.micro_batches;
      return first_sample(schedule, {pass / micro, self, pass % micro, replica});
    };
  const auto share = share_of_test(static_cast<std::size_t>(n.test_net));
  return [share, replica, before = spec_.data.test_phases](std::uint64_t pass) {
    const auto passes = share.passes(replica);
    return passes == 0 ? 0 : share.first_sample(before + pass / passes, replica, pass % passes);
  };
}

/// Run by a replica's stream after the backward kernel of a layer that writes a gradient.
std::function<void(const pass_id&)> replica_graph::contribution(std::size_t group,
                                                                std::size_t layer,
                                                                std::uint32_t replica) const {
  if (!parameters_.on_factors(group)) return parameters_.contribution(group);
  return
      [store = parameters_.factors().at(as_id<layer_id>(layer)), self = context_.self, replica,
       replicas = run_.replicas, k = &run_.train.replicas[replica]->at(layer)](const pass_id& p) {
        const auto [u, v] = store->pass(p.clock, self, std::size_t{p.index} * replicas + replica);
        k->factors(u, v);
      };
}

/// Run by a replica's stream before the forward kernel of a layer whose parameters can change during a pass.
std::function<void(const pass_id&)> replica_graph::pinning(const net_place& n, std::size_t layer,
                                                           std::uint32_t replica) const {
  const auto& c = n.compiled;
  std::vector<parameter_id> parameters;
  for (const auto p : c.graph.layers[layer].parameters) parameters.push_back(c.trained(p));
  if (run_.own)
    return [own = run_.own, parameters = std::move(parameters)](const pass_id& p) {
      for (const auto id : parameters) own->begin(id, p);
    };
  return [pins = run_.pins[replica], parameters = std::move(parameters),
          test_net = n.test_net](const pass_id& p) {
    for (const auto id : parameters) pins->pin(id, test_net, p);
  };
}

/// As in Caffe one worker alone prints it: the leader. Null where the solver does not ask for it.
std::shared_ptr<debug_info> replica_graph::make_debug_info() const {
  const auto& spec = spec_.solver.spec;
  const auto& train = run_.train;
  if (!spec.debug_info() || context_.self != context_.leader || context_.display == nullptr)
    return nullptr;
  return std::make_shared<debug_info>(
      debug_info_setup{&train.graph, train.replicas.front(), train.values.front(),
                       static_cast<std::uint64_t>(std::max(0, spec.display())), context_.display});
}

}  // namespace poseidon
