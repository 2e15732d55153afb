#include "actors/node/training_graph.hpp"

#include "actors/telemetry/actor_graph.hpp"
#include "data/sample_schedule.hpp"
#include "models/plan/byte_scale.hpp"

#include <algorithm>

namespace poseidon {

namespace {

std::string indexed(const std::string& what, std::size_t replica) {
  return what + " [" + std::to_string(replica) + "]";
}

}  // namespace

template <class D, class... Args>
handle<D> training_graph::start(thread_kind threads, std::string name, Args&&... args) {
  auto h = spawn<D>(context_.system, context_.edges, threads, std::move(name),
                    std::forward<Args>(args)...);
  all_.push_back(h);
  monitored_.push_back(h.untyped());
  return h;
}

training_graph::training_graph(const graph_context& context, const run_definition& spec,
                               const node_spec& node, compiled_run& run)
    : context_(context), spec_(spec), node_(node), run_(run), lasting_(context.lasting) {
  if (!lasting_.overlap) lasting_.overlap = std::make_shared<overlap_meter>(run.replicas);
  spawn_shard();
  spawn_checkpointer();
  spawn_solver();
  spawn_streams();
  spawn_pushes();
  train_ = spawn_net(run_.train, -1);
  for (std::size_t t = 0; t < run_.tests.size(); ++t)
    tests_.push_back(spawn_net(run_.tests[t], static_cast<std::int32_t>(t)));
}

void training_graph::spawn_streams() {
  for (std::uint32_t r = 0; r < run_.replicas; ++r) {
    stream_setup s;
    s.enter_thread = [compute = node_.compute] { compute->enter_thread(1); };
    s.first_nonfinite = [copy = run_.train.replicas[r]] { return copy->first_nonfinite(); };
    s.solver = lasting_.the_solver;
    s.overlap = lasting_.overlap;
    s.trace = lane(indexed("stream compute", r));
    if (node_.compute->is_asynchronous()) {
      s.home = std::make_shared<copies_in_flight>();
      spawn_copy_out(r, s.home);
      spawn_copy_in(r);
      s.copy_out = copies_out_.back();
    }
    streams_.push_back(start<stream>(thread_kind::own, indexed("stream compute", r), std::move(s)));
  }
}

void training_graph::spawn_copy_out(std::uint32_t replica, std::shared_ptr<copies_in_flight> home) {
  copy_out_setup s;
  s.home = std::move(home);
  s.enter_thread = [compute = node_.compute] { compute->enter_thread(1); };
  s.first_nonfinite = [copy = run_.train.replicas[replica]] { return copy->first_nonfinite(); };
  s.solver = lasting_.the_solver;
  s.trace = lane(indexed("copy_out", replica));
  copies_out_.push_back(
      start<copy_out>(thread_kind::own, indexed("copy_out", replica), std::move(s)));
}

void training_graph::spawn_copy_in(std::uint32_t replica) {
  stream_setup s;
  s.enter_thread = [compute = node_.compute] { compute->enter_thread(1); };
  s.overlap = lasting_.overlap;
  copies_in_.push_back(
      start<stream>(thread_kind::own, indexed("stream copy_in", replica), std::move(s)));
}

void training_graph::spawn_pushes() {
  const auto& n = run_.train.graph;
  push_of_parameter_.resize(n.parameters.size());
  for (auto& group : parameter_groups(n)) {
    for (const auto p : group.learned) push_of_parameter_[p] = pushes_.size();
    for (const auto p : group.frozen) push_of_parameter_[p] = pushes_.size();
    auto& entry = pushes_.emplace_back();
    entry.group = std::move(group);
    run_.by_factors[entry.group.layers.front()] ? spawn_broadcast(entry) : spawn_push(entry);
  }
}

void training_graph::spawn_push(push_entry& e) {
  const auto& first = run_.train.graph.layers[e.group.layers.front()].name;
  std::vector<std::vector<std::span<float>>> parts;
  for (const auto& r : run_.train.replicas) {
    auto& part = parts.emplace_back();
    for (const auto p : e.group.learned) part.push_back(r->gradient(p));
  }
  e.sum = std::make_shared<gradient_sum>(node_.compute, std::move(parts),
                                         run_.micro_batches / run_.passes_added,
                                         e.group.writers.size(), staleness_of(spec_));
  if (by_magnitude())
    e.magnitudes = std::make_shared<chunk_magnitudes>(
        e.sum, run_.store, e.group.learned,
        1.0f / static_cast<float>(passes_that_count() * run_.micro_batches), staleness_of(spec_));
  e.encoder = encoder_of(e.group);
  gradient_push_setup s;
  s.layer = layer_id{static_cast<std::uint32_t>(e.group.layers.front())};
  s.name = context_.trace.keep(first);
  s.self = context_.self;
  s.contributions = e.group.writers.size() * run_.replicas;
  s.micro_batches = run_.micro_batches;
  s.tells_taken = passes_overlap();
  s.parameters = e.group.learned;
  s.frozen = e.group.frozen;
  s.sum = e.sum;
  s.magnitudes = e.magnitudes;
  s.encoder = e.encoder;
  s.store = run_.store;
  s.overlap = lasting_.overlap;
  s.trace = lanes_of_clocks("gradient_push " + first);
  e.push = start<gradient_push>(thread_kind::shared, "gradient_push " + first, std::move(s));
}

/// Null where all of a group's gradients travel as they are.
std::shared_ptr<gradient_encoder> training_graph::encoder_of(const parameter_group& group) const {
  std::vector<gradient_encoder::part> parts;
  bool reduced = false;
  for (const auto p : group.learned) {
    parts.push_back({format_of(spec_.wire, p), run_.train.replicas.front()->gradient(p).size()});
    reduced = reduced || parts.back().format != wire_format::float32;
  }
  return reduced ? std::make_shared<gradient_encoder>(parts) : nullptr;
}

void training_graph::spawn_broadcast(push_entry& e) {
  const auto& n = run_.train.graph;
  const auto l = e.group.layers.front();
  const auto& name = n.layers[l].name;
  const auto layer = static_cast<std::uint32_t>(l);
  factor_broadcast_setup s;
  s.layer = layer_id{layer};
  s.name = context_.trace.keep(name);
  s.self = context_.self;
  s.workers = spec_.workers;
  s.passes = std::size_t{run_.micro_batches} * run_.replicas;
  s.scale = scale();
  s.solver = spec_.solver.spec;
  s.rule = rule_of(spec_.solver.spec);
  s.parameters = e.group.learned;
  s.frozen = e.group.frozen;
  s.of_net = n.parameters;
  s.arithmetic = node_.compute;
  s.store = run_.store;
  s.updates = run_.updates;
  const auto of_pass = factors_of(n, l);
  const auto scale_of_bytes =
      node_.compute->computes() ? 1.0 : spec_.solver.spec.poseidon().replay().byte_scale();
  s.factors = std::make_shared<factor_store>(scaled(of_pass, scale_of_bytes), factor_rows_of(l),
                                             clock_id{spec_.first_clock}, staleness_of(spec_),
                                             node_.compute->host_memory());
  s.product = of_pass;
  s.product.rows = s.factors->of_all().rows;
  factors_[layer] = s.factors;
  s.overlap = lasting_.overlap;
  s.trace = lanes_of_clocks("factor_broadcast " + name);
  e.broadcast = start<factor_broadcast>(thread_kind::own, "factor_broadcast " + name, std::move(s));
}

/// What a replica's stream does after the backward kernel of a layer that writes a gradient.
std::function<void(const pass_id&)> training_graph::contribution(const push_entry& e,
                                                                 std::size_t layer,
                                                                 std::uint32_t replica) const {
  if (e.sum)
    return [sum = e.sum, magnitudes = e.magnitudes, encoder = e.encoder,
            parts = e.group.learned.size(), last = run_.micro_batches - 1,
            added = run_.passes_added](const pass_id& p) {
      const auto clock = value(p.clock);
      if (!sum->contribute(clock, p.index / added) || p.index != last) return;
      if (magnitudes != nullptr) magnitudes->weigh(clock);
      for (std::size_t i = 0; encoder != nullptr && i < parts; ++i)
        encoder->encode(i, sum->total(clock, i));
    };
  return
      [store = factors_.at(static_cast<std::uint32_t>(layer)), self = context_.self, replica,
       replicas = run_.replicas, k = &run_.train.replicas[replica]->at(layer)](const pass_id& p) {
        const auto [u, v] = store->pass(p.clock, self, std::size_t{p.index} * replicas + replica);
        k->factors(u, v);
      };
}

/// As many as clocks can be under way: the spans of one lane do not overlap.
std::vector<trace_lane*> training_graph::lanes_of_clocks(const std::string& name) {
  std::vector<trace_lane*> lanes;
  if (context_.trace.enabled())
    for (std::uint64_t c = 0; c <= staleness_of(spec_); ++c)
      lanes.push_back(lane(c == 0 ? name : name + " +" + std::to_string(c)));
  return lanes;
}

/// What a replica's stream does before the forward kernel of a layer with parameters, where these may change.
std::function<void(const pass_id&)> training_graph::pinning(const compiled_net& c,
                                                            std::size_t layer,
                                                            std::uint32_t replica,
                                                            std::int32_t test_net) const {
  auto parameters = c.graph.layers[layer].parameters;
  if (!c.to_train.empty())
    for (auto& p : parameters) p = c.to_train[p];
  return
      [pins = run_.pins[replica], parameters = std::move(parameters), test_net](const pass_id& p) {
        for (const auto id : parameters) pins->pin(id, test_net, p);
      };
}

/// Can a replica compute a pass before all others have computed the one before?
bool training_graph::passes_overlap() const {
  return run_.replicas > 1 && (run_.micro_batches > 1 || staleness_of(spec_) > 0);
}

/// At staleness 0 everybody waits for every chunk: the one that is needed first goes first.
bool training_graph::by_magnitude() const {
  return context_.has_budget && staleness_of(spec_) > 0;
}

training_graph::net_actors training_graph::spawn_net(compiled_net& c, std::int32_t test_net) {
  const bool training = test_net < 0;
  const auto prefix = name_prefix(test_net);
  net_actors out;
  out.layers.resize(run_.replicas);
  out.sources.resize(run_.replicas);
  const auto debug = training ? debug_of(c) : nullptr;
  for (std::uint32_t r = 0; r < run_.replicas; ++r) {
    for (std::size_t l = 0; l < c.graph.layers.size(); ++l) {
      const auto& from = c.graph.layers[l];
      layer_setup s;
      s.in_replica = replica_id{r};
      s.name = context_.trace.keep(from.name);
      s.compiled = c.replicas[r];
      s.compute = &c.replicas[r]->at(l);
      s.seed = spec_.seed;
      s.training = training;
      s.test_net = test_net;
      s.is_source = is_source(from);
      for (std::size_t d = 0; d < c.data_layers.size(); ++d)
        if (c.data_layers[d] == l) s.fed = &c.fed[r][d];
      s.runs_backward = runs_backward(c.graph, from);
      const auto* push = from.parameters.empty() ? nullptr : push_of(from.name);
      s.has_parameters = push != nullptr;
      s.learns = push != nullptr && !push->group.learned.empty();
      s.stream = streams_[r];
      s.is_asynchronous = node_.compute->is_asynchronous();
      s.in_net = l;
      if (s.learns && training && push->sum)
        s.home_phase = home_phase_of(run_, push->group.learned.front(), r);
      // Test nets read what their train net has; with pins the stream decides when a pass begins.
      if (s.is_asynchronous && training && run_.pins.empty()) s.copy_in = copies_in_[r];
      s.outputs = lasting_.the_solver;
      s.issued = lasting_.the_solver;
      if (training) {
        if (push != nullptr && push->group.is_writer(l)) s.contribute = contribution(*push, l, r);
        if (push != nullptr && push->sum != nullptr) s.passes_added = run_.passes_added;
        // Each pass's factors have a place of their own.
        s.waits_for_taken = passes_overlap() && push != nullptr && push->sum != nullptr;
        s.staleness = staleness_of(spec_);
        s.passes_after = [schedule = schedule_of(spec_, run_),
                          self = std::uint64_t{value(context_.self)}, r](std::uint32_t micro) {
          return passes_after(schedule, {0, self, micro, r});
        };
      }
      if (!run_.pins.empty() && push != nullptr) s.pin = pinning(c, l, r, test_net);
      if (debug != nullptr && r == 0)
        s.inspect = [debug, l](const pass_id& p, bool backward) {
          backward ? debug->backward(l, value(p.clock)) : debug->forward(l, value(p.clock));
        };
      for (const auto& reader : c.readers)
        if (reader.layer == l) {
          s.first_output = static_cast<std::uint32_t>(reader.first);
          s.read_outputs = [copy = c.replicas[r], &c, reader] {
            return read_outputs(c, *copy, reader);
          };
          s.make_outputs = [reader](const auto& values) { return make_outputs(reader, values); };
          s.output_blobs = reader.blobs;
        }
      out.layers[r].push_back(start<layer>(
          thread_kind::shared, prefix + indexed("layer " + from.name, r), std::move(s)));
    }
    for (std::size_t d = 0; d < c.data_layers.size(); ++d) {
      const auto& name = c.graph.layers[c.data_layers[d]].name;
      data_source_setup s;
      s.source = c.sources[d];
      s.memory = node_.compute->host_memory();
      s.batch = c.batch_of(r);
      s.readers = run_.readers;
      s.name = context_.trace.keep(name);
      s.node = context_.node_failed;
      s.trace = lane(prefix + indexed("data_source " + name, r));
      const auto self = std::uint64_t{value(context_.self)};
      if (training) {
        s.first_sample = [schedule = schedule_of(spec_, run_), self, r](std::uint64_t n) {
          const auto micro = schedule.micro_batches;
          return first_sample(schedule, {n / micro, self, n % micro, r});
        };
      } else {
        const auto share = solver_view(c, out).share;
        s.first_sample = [share, r, before = spec_.data.test_phases](std::uint64_t n) {
          const auto passes = share.passes(r);
          return passes == 0 ? 0 : share.first_sample(before + n / passes, r, n % passes);
        };
      }
      out.sources[r].push_back(start<data_source>(
          thread_kind::own, prefix + indexed("data_source " + name, r), std::move(s)));
    }
  }
  return out;
}

/// As in Caffe the first worker alone speaks. Null where the solver does not ask for it.
std::shared_ptr<debug_info> training_graph::debug_of(const compiled_net& train) const {
  const auto& spec = spec_.solver.spec;
  if (!spec.debug_info() || value(context_.self) != 0 || context_.display == nullptr)
    return nullptr;
  return std::make_shared<debug_info>(
      debug_info_setup{&train.graph, train.replicas.front(), train.values.front(),
                       static_cast<std::uint64_t>(std::max(0, spec.display())), context_.display});
}

/// Waking a thread of its own takes a shard longer than updating some ten thousand values, and it has two wake-ups on the
/// way from the first layer's gradient to its next forward pass; what it computes holds up other messages for as long.
bool training_graph::owns_little() const {
  constexpr std::size_t little = 256 * 1024;  // values
  const auto& cut = run_.store->cut();
  std::size_t values = 0;
  for (const auto id : cut.by_owner[value(context_.self)]) values += cut.chunks[id].count;
  return values <= little;
}

void training_graph::spawn_shard() {
  const auto& n = run_.train.graph;
  server_shard_setup shard;
  shard.self = context_.self;
  shard.workers = spec_.workers;
  shard.replicas = passes_that_count();
  shard.passes = schedule_of(spec_, run_).passes_per_clock();
  shard.scale = scale();
  shard.solver = spec_.solver.spec;
  shard.rule = rule_of(spec_.solver.spec);
  shard.parameters = n.parameters;
  for (std::size_t p = 0; p < n.parameters.size(); ++p) {
    shard.learned.push_back(is_learned(n, p));
    shard.first_uses.push_back(static_cast<std::uint32_t>(first_use(n, p)));
    shard.names.push_back(context_.trace.keep(n.layers[n.parameters[p].layer].name));
  }
  shard.by_magnitude = by_magnitude();
  shard.arithmetic = node_.compute;
  shard.store = run_.store;
  shard.updates = run_.updates;
  shard.trace = lane("server_shard");
  shard_ = start<server_shard>(owns_little() ? thread_kind::shared : thread_kind::own,
                               "server_shard", std::move(shard));
}

void training_graph::spawn_checkpointer() {
  if (lasting_.checkpoints) return all_.push_back(lasting_.checkpoints);
  checkpointer_setup snapshots;
  snapshots.history_slots = history_count(rule_of(spec_.solver.spec).kind);
  snapshots.solver = spec_.solver.spec;
  snapshots.display = context_.display;
  lasting_.checkpoints =
      start<checkpointer>(thread_kind::own, "checkpointer", std::move(snapshots));
}

void training_graph::spawn_solver() {
  if (lasting_.the_solver) return all_.push_back(lasting_.the_solver);
  solver_setup s;
  s.self = context_.self;
  s.workers = spec_.workers;
  s.replicas = run_.replicas;
  s.micro_batches = run_.micro_batches;
  for (const auto& group : parameter_groups(run_.train.graph))
    if (!group.learned.empty()) ++s.layers_that_learn;
  const auto schedule = schedule_of(spec_, run_);
  s.images_per_clock = samples_of_node(run_);
  s.images_of_all = schedule.samples_per_clock();
  for (std::uint32_t r = 0; uneven(spec_.shares) && r < run_.replicas; ++r)
    s.weights.push_back(static_cast<double>(run_.train.batch_of(r)) /
                        static_cast<double>(run_.whole_batch));
  s.spec = spec_.solver.spec;
  s.barrier = s.spec.poseidon().replay().fifo();
  s.test_phases = spec_.data.test_phases;
  s.overlap = lasting_.overlap;
  s.first_sample = [schedule, self = std::uint64_t{value(context_.self)}](
                       std::uint64_t clock, std::uint32_t micro, std::uint32_t replica) {
    return first_sample(schedule, {clock, self, micro, replica});
  };
  s.display = context_.display;
  s.carried = context_.carried;
  lasting_.the_solver = start<solver>(thread_kind::shared, "solver", std::move(s));
}

}  // namespace poseidon
