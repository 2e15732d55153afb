#include "actors/run/run_description.hpp"

#include "actors/run/kinds.hpp"
#include "actors/run/view_shares.hpp"
#include "data/source.hpp"
#include "models/plan/keepers.hpp"
#include "models/plan/lowrank_routes.hpp"
#include "models/solver/solver_rule.hpp"
#include "models/words.hpp"

#include <algorithm>

namespace poseidon {

namespace {

/// The folder or file that a data layer names; nothing for layers that make their data up.
std::string source_of(const ::caffe::LayerParameter& l) {
  return l.has_data_param() ? " of " + l.data_param().source() : "";
}

void describe_net(const compiled_net& c, const std::string& what, const compiled_run& run,
                  std::vector<std::string>& lines) {
  lines.push_back("net: " + what + " \"" + c.graph.name + "\", " +
                  plural(c.graph.layers.size(), "layer") + ", " +
                  plural(c.graph.parameters.size(), "parameter") + ", " +
                  plural(run.replicas, "replica") + " of batch " + std::to_string(c.batch));
  for (std::size_t d = 0; d < c.data_layers.size(); ++d) {
    const auto& layer = c.graph.layers[c.data_layers[d]];
    std::string shapes;
    for (const auto& s : c.sources[d]->sample_shapes())
      shapes += (shapes.empty() ? "" : " and ") + (s.empty() ? "one value" : to_string(s));
    lines.push_back(
        "data_source " + layer.name + ": " + std::to_string(c.sources[d]->size()) + " samples" +
        source_of(layer.spec) + (shapes.empty() ? ", not looked at" : ", each " + shapes) +
        (run.readers > 1 ? ", read by " + std::to_string(run.readers) + " threads" : ""));
  }
}

}  // namespace

std::vector<std::string> describe_run(const compiled_run& run, const run_definition& spec) {
  std::vector<std::string> lines;
  if (!spec.declared.empty()) return lines;
  describe_net(run.train, "train", run, lines);
  for (std::size_t t = 0; t < run.tests.size(); ++t)
    describe_net(run.tests[t], "test " + std::to_string(t), run, lines);
  lines.push_back(
      "solver: rule " + spec.solver.spec.type() + ", iterations " +
      std::to_string(iteration_of(spec, spec.first_clock)) + " to " +
      std::to_string(spec.solver.spec.max_iter()) + ", " +
      plural(run.micro_batches / iterations_per_clock(spec.solver.spec), "micro-batch") +
      " an iteration, seed " + std::to_string(spec.seed) + ", staleness " +
      std::to_string(staleness_of(spec)));
  if (run.joined > 1)
    lines.push_back("devices: the first " + std::to_string(run.joined) + " of " +
                    plural(run.replicas, "replica") +
                    " add their gradients on the first one's device");
  return lines;
}

namespace {

std::string format_note(const partition& cut, parameter_id parameter) {
  const auto& chunks = cut.by_parameter[parameter];
  const auto format = chunks.empty() ? wire_format::float32 : cut.chunks[chunks.front()].format;
  return format == wire_format::float32 ? "" : std::string(to_string(format)) + ", ";
}

}  // namespace

namespace {

/// Why bits differ from those of one node, and what keeps them; without a remedy empty.
struct reason {
  std::string why, remedy;
};

std::vector<reason> reasons_of(const compiled_run& run, const run_definition& spec,
                               const std::vector<frames::member>& nodes,
                               const std::vector<progress::promise::difference>& differences) {
  std::vector<reason> out;
  std::vector<std::string> broadcast;
  const auto by_factors = factor_layers(run.train.graph, spec.routes);
  for (std::size_t l = 0; l < by_factors.size(); ++l)
    if (by_factors[l]) broadcast.push_back(run.train.graph.layers[l].name);
  if (!broadcast.empty())
    out.push_back(
        {comma_list(broadcast) + (broadcast.size() > 1 ? " broadcast" : " broadcasts") + " factors",
         "--routes ps"});
  if (!run.shares.empty()) out.push_back({"nodes have different shares of the batch", ""});
  if (const auto varies = varying_of(nodes); !varies.empty())
    out.push_back({"sums have another order in every run with " + varies, "--math fp32"});
  if (differences.empty()) return out;
  std::string all;
  for (const auto& d : differences) all += (all.empty() ? "" : "; ") + sentence_of(d);
  out.push_back({all, remedy_of(differences, nodes).value_or("")});
  return out;
}

/// "ip1, ip2 send"; empty: no layer goes by low rank.
std::string senders_by_lowrank(const compiled_run& run, const run_definition& spec) {
  const auto& n = run.train.graph;
  std::vector<std::string> names;
  for (const auto l : lowrank_layers(n, spec.routes)) names.push_back(n.layers[l].name);
  if (names.empty()) return {};
  return comma_list(names) + (names.size() > 1 ? " send" : " sends");
}

/// "ip1 broadcasts factors; --routes ps keeps the bits"
std::string sentence_of(const std::vector<reason>& reasons) {
  std::string why, remedies;
  bool all_have = true;
  for (const auto& r : reasons) {
    why += (why.empty() ? "" : "; ") + r.why;
    remedies += (remedies.empty() ? "" : " and ") + r.remedy;
    all_have = all_have && !r.remedy.empty();
  }
  return why + (all_have ? "; " + remedies + (reasons.size() > 1 ? " keep" : " keeps") + " the bits"
                         : "");
}

/// Of a program's parameters; empty: none goes by low rank. The option gives all of them the same rank.
std::string sentence_of_lowrank(const run_definition& spec) {
  std::size_t senders = 0;
  std::uint32_t rank = 0;
  for (const auto r : spec.routes) {
    if (rank_of(r) == 0) continue;
    ++senders;
    rank = rank_of(r);
  }
  if (senders == 0) return {};
  return "by low rank (rank " + std::to_string(rank) + ") " + plural(senders, "parameter") +
         (senders > 1 ? " send" : " sends") +
         " a part of each gradient and the rest later; routes=ps keeps the bits";
}

/// Programs compute the gradients, and know by what else their results differ from one process's.
std::string promise_of_programs(const run_definition& spec,
                                const std::vector<progress::promise::difference>& differences) {
  const auto by_lowrank = sentence_of_lowrank(spec);
  auto text = by_lowrank;
  for (const auto& d : differences) text += (text.empty() ? "" : "; ") + sentence_of(d);
  if (text.empty()) return text;
  return (by_lowrank.empty() ? "results: not bit-equal to one process: "
                             : "results: not those of one process: ") +
         text;
}

/// What outer steps leave of a promise: the nodes' parameters are equal, and not those of one machine.
std::string promise_of_outer_steps(const run_definition& spec, std::uint64_t every) {
  return "results: not those of one machine: each of " + plural(spec.workers, "node") + " makes " +
         plural(every, "iteration") +
         " by itself, then all go on with the same parameters (outer_steps)" +
         (spec.wire.empty() ? "" : "; --wire rounds what travels");
}

std::string promise_of_nodes(const compiled_run& run, const run_definition& spec,
                             const std::vector<reason>& reasons, bool in_bf16) {
  if (const auto outer = outer_rule_of(spec.solver.spec))
    return promise_of_outer_steps(spec, outer->every);
  const auto kept = global_batch_of(spec);
  const auto iter_size = run.shares.empty() ? spec.workers * std::size_t{passes_of(spec.solver)}
                                            : samples_of_all(run.shares) / run.whole_batch;
  const auto one_node =
      "one node with iter_size " + std::to_string(iter_size) + (in_bf16 ? " and --math bf16" : "");
  if (const auto old = staleness_of(spec); old > 0)
    return "results: not those of " + one_node + ": parameters may be " + plural(old, "iteration") +
           " old (staleness)";
  if (const auto senders = senders_by_lowrank(run, spec); !senders.empty())
    return "results: near those of " + one_node + ": by low rank, " + senders +
           " a part of each gradient and the rest later" +
           (kept == 0 && reasons.empty() && spec.wire.empty() ? "; --routes ps keeps the bits"
                                                              : "");
  if (!spec.wire.empty())
    return "results: near those of " + one_node + ": --wire rounds what travels" +
           (kept == 0 && reasons.empty() ? "; --wire float32 keeps the bits" : "");
  if (kept > 0)
    return "results: equal to one node with the same samples up to rounding: with --global-batch "
           "keep nodes cut the samples of an iteration elsewhere as their number changes";
  if (!reasons.empty())
    return "results: equal to " +
           (run.shares.empty() ? one_node : "one node with the same samples") +
           " up to rounding: " + sentence_of(reasons);
  return "results: bit-equal to " + one_node +
         (spec.routes_follow_links
              ? ", until a link's rate changes so much that layers move; --routes ps keeps them"
              : "");
}

}  // namespace

progress::promise describe_promise(const compiled_run& run, const run_definition& spec,
                                   const std::vector<frames::member>& nodes) {
  progress::promise out;
  if (spec.state_zeroed_at > 0) {
    out.text = "results: not those of one node with the same samples: at iteration " +
               std::to_string(iteration_of(spec, spec.state_zeroed_at)) +
               " solver state that was lost began with zeros (--lost-state zero)";
    return out;
  }
  if (spec.workers < 2 && nodes.size() < 2) return out;
  out.differences = differences_of(nodes);
  if (!spec.declared.empty()) {
    out.text = promise_of_programs(spec, out.differences);
    return out;
  }
  const auto reasons = reasons_of(run, spec, nodes, out.differences);
  out.text = promise_of_nodes(run, spec, reasons, all_multiply_bf16(nodes));
  out.bit_equal = out.text.starts_with("results: bit-equal");
  return out;
}

std::vector<std::string> describe_partition(const compiled_run& run, std::size_t workers) {
  std::vector<std::string> lines;
  const auto& net = run.train.graph;
  const auto& cut = run.store->cut();
  for (const auto p : cut.by_parameter.ids()) {
    const auto& of_net = net.parameters[value(p)];
    const auto line = "route " + net.layers[of_net.layer].name + "/" + std::to_string(of_net.slot) +
                      ": " + to_string(of_net.shape);
    if (on_every_node(cut, p)) {
      lines.push_back(line + ", " + std::string(to_string(route_of(cut.routes, p))));
      continue;
    }
    by_id<worker_id, std::size_t> owned(workers);
    for (const auto id : cut.by_parameter[p]) ++owned[cut.chunks[id].owner];
    std::string by_worker;
    for (const auto n : owned) by_worker += " " + std::to_string(n);
    lines.push_back(line + (is_learned(of_net) ? ", parameter_server, " : ", frozen, ") +
                    format_note(cut, p) + plural(cut.by_parameter[p].size(), "chunk") +
                    ", by worker:" + by_worker);
  }
  for (const auto w : cut.by_owner.ids()) {
    std::uint64_t bytes = 0;
    for (const auto id : cut.by_owner[w]) bytes += sizeof(float) * cut.chunks[id].count;
    lines.push_back("server_shard of worker " + std::to_string(value(w)) + ": " +
                    plural(cut.by_owner[w].size(), "chunk") + " of " +
                    std::to_string(cut.chunks.size()) + ", " + megabytes(bytes));
  }
  for (const auto w : cut.by_owner.ids()) {
    std::size_t chunks = 0;
    std::uint64_t bytes = 0;
    for (const auto id : cut.chunks.ids()) {
      if (!is_keeper(cut, id, w)) continue;
      ++chunks;
      bytes += sizeof(float) * cut.chunks[id].count;
    }
    if (chunks > 0)
      lines.push_back("state_keeper of worker " + std::to_string(value(w)) + ": copies of the " +
                      "solver state of " + plural(chunks, "chunk") + ", " + megabytes(bytes) +
                      " of values");
  }
  return lines;
}

}  // namespace poseidon
