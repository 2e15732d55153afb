#include "apps/graph/plan.hpp"

#include "data/source.hpp"
#include "models/net/net_builder.hpp"
#include "models/plan/keepers.hpp"
#include "models/plan/partition.hpp"
#include "models/solver/solver_file.hpp"
#include "models/spec/spec_kind.hpp"

#include <fstream>
#include <iostream>
#include <iterator>
#include <regex>

namespace poseidon::app {

namespace {

bool is_solver(const std::filesystem::path& path) {
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return kind_of_spec(outer_fields(text)) == spec_kind::solver;
}

/// What samples of a source that is not there may look like, so that the net can be drawn at all.
shape guessed_sample(const ::caffe::LayerParameter& layer) {
  const auto crop = layer.transform_param().crop_size();
  return crop > 0 ? shape{3, crop, crop} : shape{1, 28, 28};
}

/// The data's own shapes where it can be read, else what the user said, else a guess that is not kept secret.
source_shapes shapes_for(const graph_options& o, ::caffe::Phase phase) {
  source_options s;
  s.phase = phase;
  s.directory = std::filesystem::current_path();  // as Caffe does
  s.data_root = o.data_root;
  return [=, from_sources = shapes_from_sources(s)](
             const ::caffe::LayerParameter& layer,
             const spec_position& where) -> std::vector<shape> {
    shape sample = o.input;
    if (sample.empty()) {
      try {
        return from_sources(layer, where);
      } catch (const std::exception& e) {
        sample = guessed_sample(layer);
        std::cerr << "poseidon-graph: " << e.what() << "\n  The net is drawn for samples of "
                  << to_string(sample)
                  << ", a guess. Say what they are with --input, for example --input 3x32x32.\n";
      }
    }
    const auto batch = batch_size(layer, where);
    shape values{batch};
    values.insert(values.end(), sample.begin(), sample.end());
    std::vector<shape> tops(static_cast<std::size_t>(layer.top_size()), shape{batch});
    if (!tops.empty()) tops[0] = values;
    return tops;
  };
}

net resolve(const net_file& file, const net_state& state, const graph_options& o) {
  build_options b;
  b.state = state;
  b.sources = shapes_for(o, state.phase);
  b.split_batch = static_cast<std::int64_t>(o.replicas);
  return build_net(file, b);
}

}  // namespace

std::size_t parse_replicas(const std::string& text) {
  std::smatch found;
  if (text == "cpu") return 1;
  if (std::regex_match(text, found, std::regex("cpu:([0-9]{1,4})")) && std::stoul(found[1]) >= 1)
    return std::stoul(found[1]);
  throw spec_error("--devices " + text + ": expected cpu, or cpu:R with R replicas.");
}

shape parse_shape(const std::string& text) {
  if (!std::regex_match(text, std::regex("[1-9][0-9]{0,8}(x[1-9][0-9]{0,8})*")))
    throw spec_error("--input " + text +
                     ": expected extents like 1x28x28 (channels x height x width).");
  shape out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('x', at), text.size());
    out.push_back(std::stoll(text.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

actor_graph plan_of(const graph_options& o) {
  net train;
  std::vector<net> tests;
  ::caffe::SolverParameter rules;
  if (is_solver(o.spec)) {
    const auto solver = read_solver(o.spec);
    rules = solver.spec;
    train = resolve(solver.train_net, solver.train_state, o);
    for (std::size_t t = 0; t < solver.test_nets.size(); ++t)
      tests.push_back(resolve(solver.test_nets[t], solver.test_states[t], o));
  } else {
    train = resolve(read_net(o.spec), {}, o);
  }
  parameter_routes routes;
  const auto option = parse_routes(o.routes);
  if (option.what == route_option::kind::automatic)
    throw spec_error(
        "--routes auto times the machine that trains, and nothing is drawn by that. Give ps, sfb, "
        "lowrank or a file; poseidon-node --explain-routes says what auto would choose.");
  if (o.nodes > 1) routes = routes_of(train, layers_of_option(train, option, rules));
  auto cut = make_partition(train, o.nodes, routes);
  set_keepers(cut, train.parameters, o.survive);
  return plan_graph(train, cut, {o.nodes, o.replicas, o.worker}, tests);
}

}  // namespace poseidon::app
