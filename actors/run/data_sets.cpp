#include "actors/run/data_sets.hpp"

#include "actors/run/train_net.hpp"
#include "data/source.hpp"
#include "models/words.hpp"

#include <algorithm>

namespace poseidon {

namespace {

frames::data_set data_set_of(std::size_t net, const std::string& layer,
                             const sample_source& source) {
  frames::data_set out{static_cast<std::uint32_t>(net), layer, "", source.size()};
  for (const auto& s : source.sample_shapes())
    out.sample += (out.sample.empty() ? "" : " and ") + (s.empty() ? "one value" : to_string(s));
  return out;
}

void add(std::size_t n, const compiled_net& c, std::vector<frames::data_set>& out) {
  for (std::size_t d = 0; d < c.data_layers.size(); ++d)
    if (!c.sources[d]->sample_shapes().empty())  // it has been looked at
      out.push_back(data_set_of(n, c.graph.layers[c.data_layers[d]].name, *c.sources[d]));
}

void add(std::size_t n, const net& graph, source_options options,
         std::vector<frames::data_set>& out) {
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    const auto& layer = graph.layers[l];
    if (!is_source(layer)) continue;
    options.layer = static_cast<std::uint32_t>(l);
    out.push_back(data_set_of(n, layer.name, *open_source(layer.spec, layer.where, options)));
  }
}

std::string name_of_net(std::uint32_t n) {
  return n == 0 ? "the train net" : "test net " + std::to_string(n - 1);
}

[[noreturn]] void refuse(const frames::data_set& here, const std::string& has,
                         const std::string& run_has, const std::string& advice) {
  throw spec_error("layer \"" + here.layer + "\" of " + name_of_net(here.net) + " reads " + has +
                   " on this node, and " + run_has + " on the run's first node. " + advice);
}

}  // namespace

std::vector<frames::data_set> data_sets_of(const compiled_run& c) {
  std::vector<frames::data_set> out;
  add(0, c.train, out);
  for (std::size_t t = 0; t < c.tests.size(); ++t) add(t + 1, c.tests[t], out);
  return out;
}

std::vector<frames::data_set> data_sets_of(const run_definition& run, const node_spec& node,
                                           const std::shared_ptr<opened_images>& opened) {
  std::vector<frames::data_set> out;
  const auto& s = run.solver;
  const auto train = options_for(run, node, ::caffe::TRAIN, opened);
  add(0, build(s.train_net, s.train_state, train, 1), train, out);
  const auto test = options_for(run, node, ::caffe::TEST, opened);
  for (std::size_t t = 0; t < s.test_nets.size(); ++t)
    add(t + 1, build(s.test_nets[t], s.test_states[t], test, 1), test, out);
  return out;
}

void compare_data(const std::vector<frames::data_set>& here, const run_definition& run,
                  const node_spec& node) {
  const bool parts = node.own_data || run.solver.spec.poseidon().own_data();
  for (const auto& own : here) {
    const auto of_run =
        std::find_if(run.data_sets.begin(), run.data_sets.end(),
                     [&](const auto& d) { return d.net == own.net && d.layer == own.layer; });
    if (of_run == run.data_sets.end()) continue;
    if (own.sample != of_run->sample)
      refuse(own, "samples of " + own.sample, "of " + of_run->sample,
             "This node has other data than the run: copy the first node's data set here, or name "
             "its folder with --data-root.");
    if (own.records == of_run->records || (parts && own.net == 0)) continue;
    refuse(own, plural(own.records, "record"), std::to_string(of_run->records),
           "Nodes share the samples by their numbers, so some would be used twice and others "
           "never: copy the first node's data set here, or name its folder with --data-root." +
               std::string(own.net > 0 ? ""
                                       : " Where each node is to train on a part of its own, give "
                                         "--own-data to all of them."));
  }
}

}  // namespace poseidon
