#include "models/solver/solver_file.hpp"

#include "models/solver/solver_checks.hpp"
#include "models/spec/spec_kind.hpp"
#include "models/spec/text_format.hpp"
#include "models/spec/upgrade.hpp"
#include "models/words.hpp"

#include <sstream>
#include <utility>

namespace poseidon {

namespace {

using ::caffe::SolverParameter;

/// The folder above the solver's from which `name` is meant, as where a user starts in another folder than the solver's
/// author did. Empty: there is none.
std::filesystem::path meant_from(const std::filesystem::path& name, const solver_source& s) {
  std::error_code ignored;
  auto above = std::filesystem::absolute(s.folder.empty() ? "." : s.folder, ignored);
  while (above.has_relative_path()) {
    above = above.parent_path();
    if (std::filesystem::exists(above / name, ignored)) return above;
  }
  return {};
}

/// Relative to the working directory, as in Caffe, or else to the solver's folder.
std::filesystem::path find_file(const std::filesystem::path& name, const solver_source& s,
                                const char* field, int index) {
  std::error_code ignored;
  if (std::filesystem::exists(name, ignored)) return name;
  const auto beside = s.folder / name;
  if (std::filesystem::exists(beside, ignored)) return beside;
  const auto other = meant_from(name, s);
  throw spec_error(
      s.at(field, index),
      std::string(field) + " \"" + name.string() + "\": there is no such file, neither in " +
          std::filesystem::current_path(ignored).string() + " nor beside the solver" +
          (s.folder.empty() ? "" : " in " + s.folder.string()) + "." +
          (other.empty()
               ? ""
               : " " + other.string() + " has it: start the program there, as with Caffe."));
}

/// `weights: "a, b"`, several times.
std::vector<std::filesystem::path> weights_of(const solver_source& s) {
  std::vector<std::filesystem::path> all;
  for (int i = 0; i < s.spec.weights_size(); ++i)
    for (const auto& path : split_paths(s.spec.weights(i)))
      all.push_back(find_file(path, s, "weights", i));
  return all;
}

net_file inline_net(const ::caffe::NetParameter& spec, const solver_source& s, const char* field,
                    int index) {
  net_file net{spec, {}, s.folder};
  const auto* f = SolverParameter::descriptor()->FindFieldByName(field);
  const auto* lines = s.lines == nullptr ? nullptr : s.lines->GetTreeForNested(f, index);
  const auto place = [&](const char* name, int i) {
    return spec_position{s.file, lines == nullptr ? 0 : line_of(*lines, spec, name, i)};
  };
  for (int i = 0; i < spec.layers_size(); ++i) net.layer_places.push_back(place("layers", i));
  for (int i = 0; i < spec.layer_size(); ++i) net.layer_places.push_back(place("layer", i));
  upgrade_net(net.spec, net.layer_places, s.at(field, index));
  return net;
}

/// In rising order of precedence: the phase, the net's own state, the solver's state.
net_state merged_state(::caffe::Phase phase, const net_file& net,
                       const ::caffe::NetState* by_solver) {
  ::caffe::NetState state;
  state.set_phase(phase);
  state.MergeFrom(net.spec.state());
  if (by_solver != nullptr) state.MergeFrom(*by_solver);
  return {state.phase(), state.level(), {state.stage().begin(), state.stage().end()}};
}

net_file train_net_of(const solver_source& s) {
  const auto& spec = s.spec;
  const int given =
      spec.has_net() + spec.has_net_param() + spec.has_train_net() + spec.has_train_net_param();
  const std::string fields = "net, net_param, train_net, train_net_param";
  require(given >= 1, {s.file, 0}, "it names no net to train. Give one of " + fields + ".");
  require(given <= 1,
          s.at(spec.has_train_net() ? "train_net"
               : spec.has_net()     ? "net"
                                    : "net_param"),
          "it names " + std::to_string(given) + " nets to train. Give only one of " + fields + ".");
  if (spec.has_net()) return read_net(find_file(spec.net(), s, "net", -1));
  if (spec.has_train_net()) return read_net(find_file(spec.train_net(), s, "train_net", -1));
  return spec.has_net_param() ? inline_net(spec.net_param(), s, "net_param", -1)
                              : inline_net(spec.train_net_param(), s, "train_net_param", -1);
}

std::vector<net_file> test_nets_of(const solver_source& s, const net_file& train_net) {
  const auto& spec = s.spec;
  // also the test net of each further test_iter
  const bool generic = spec.has_net() || spec.has_net_param();
  const int named = spec.test_net_param_size() + spec.test_net_size();
  const int wanted = spec.test_iter_size();
  require(generic ? wanted >= named : wanted == named,
          s.at(wanted > 0 ? "test_iter" : "test_net", 0),
          "it has " + plural(static_cast<std::size_t>(named), "test net") + " but " +
              std::to_string(wanted) + " test_iter. Give one test_iter per test net.");
  require(spec.test_state_size() == 0 || spec.test_state_size() == wanted, s.at("test_state", 0),
          "it has " + std::to_string(spec.test_state_size()) + " test_state and " +
              std::to_string(wanted) + " test_iter. Give one test_state per test net, or none.");
  require(wanted == 0 || spec.test_interval() > 0, s.at("test_iter", 0),
          "it has a test net, but its test_interval is " + std::to_string(spec.test_interval()) +
              ". Say every how many iterations to test.");
  std::vector<net_file> nets;
  for (int i = 0; i < spec.test_net_param_size(); ++i)
    nets.push_back(inline_net(spec.test_net_param(i), s, "test_net_param", i));
  for (int i = 0; i < spec.test_net_size(); ++i)
    nets.push_back(read_net(find_file(spec.test_net(i), s, "test_net", i)));
  nets.resize(static_cast<std::size_t>(wanted), train_net);
  return nets;
}

solver_file resolve(const solver_source& s) {
  check_fields(s);
  solver_file file;
  file.spec = s.spec;
  file.warnings = warnings_of(s);
  file.where = {s.file, 0};
  file.weights = weights_of(s);
  file.train_net = train_net_of(s);
  file.train_state = merged_state(::caffe::TRAIN, file.train_net, &s.spec.train_state());
  file.test_nets = test_nets_of(s, file.train_net);
  for (std::size_t i = 0; i < file.test_nets.size(); ++i)
    file.test_states.push_back(merged_state(
        ::caffe::TEST, file.test_nets[i],
        s.spec.test_state_size() > 0 ? &s.spec.test_state(static_cast<int>(i)) : nullptr));
  return file;
}

void write_state(const net_state& from, ::caffe::NetState& to) {
  to.Clear();
  to.set_phase(from.phase);
  to.set_level(from.level);
  for (const auto& stage : from.stages) to.add_stage(stage);
}

}  // namespace

std::vector<std::filesystem::path> split_paths(const std::string& text) {
  std::vector<std::filesystem::path> paths;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto begin = word.find_first_not_of(" \t"), end = word.find_last_not_of(" \t");
    if (begin != std::string::npos) paths.emplace_back(word.substr(begin, end + 1 - begin));
  }
  return paths;
}

solver_file resolve_solver(const ::caffe::SolverParameter& spec, const spec_position& where) {
  return resolve({spec, nullptr, where.file, {}});
}

solver_file read_solver(const std::filesystem::path& path) {
  SolverParameter spec;
  field_lines lines;
  const auto text = read_spec_text(path);
  if (kind_of_spec(outer_fields(text)) == spec_kind::net)
    throw spec_error({path.string(), 0},
                     "this is a net, and a solver is needed here: a file that names the net and "
                     "says how to train it (net, base_lr, lr_policy, max_iter).");
  parse_text(text, path.string(), spec, lines);
  upgrade_solver(spec, {path.string(), line_of(lines, spec, "solver_type", -1)});
  // As in Caffe, snapshots are named after the solver by default.
  std::error_code ignored;
  if (!spec.has_snapshot_prefix())
    spec.set_snapshot_prefix((path.parent_path() / path.stem()).string());
  else if (std::filesystem::is_directory(spec.snapshot_prefix(), ignored))
    spec.set_snapshot_prefix(
        (std::filesystem::path(spec.snapshot_prefix()) / path.stem()).string());
  return resolve({spec, &lines, path.string(), path.parent_path()});
}

::caffe::SolverParameter self_contained(const solver_file& file) {
  auto spec = file.spec;
  spec.clear_net();
  spec.clear_net_param();
  spec.clear_train_net();
  spec.clear_test_net();
  spec.clear_test_net_param();
  spec.clear_test_state();
  spec.clear_weights();  // the first node hands out the values
  *spec.mutable_train_net_param() = file.train_net.spec;
  // Merging a merged state with the net's own again would repeat the net's stages.
  spec.mutable_train_net_param()->clear_state();
  write_state(file.train_state, *spec.mutable_train_state());
  for (std::size_t i = 0; i < file.test_nets.size(); ++i) {
    auto& net = *spec.add_test_net_param();
    net = file.test_nets[i].spec;
    net.clear_state();
    write_state(file.test_states[i], *spec.add_test_state());
  }
  return spec;
}

}  // namespace poseidon
