#include "models/solver/solver_file.hpp"

#include "models/spec/text_format.hpp"
#include "models/spec/upgrade.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <functional>
#include <sstream>
#include <utility>

namespace poseidon {

namespace {

using ::caffe::SolverParameter;
using place_of = std::function<spec_position(const char* field)>;

/// A solver while it is resolved: its message, and the places of its fields if they come from a file.
struct solver_source {
  const SolverParameter& spec;
  const field_lines* lines = nullptr;
  std::string file;
  std::filesystem::path folder;

  [[nodiscard]] spec_position at(const char* field, int index = -1) const {
    return {file, lines == nullptr ? 0 : line_of(*lines, spec, field, index)};
  }
};

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void require(bool holds, const spec_position& where, const std::string& text) {
  if (!holds) throw spec_error(where, text);
}

/// `what "word" is none of Caffe's.` with the nearest, or all.
std::string unknown(const std::string& what, const std::string& word,
                    const std::vector<std::string>& known) {
  auto hint = did_you_mean(word, known);
  if (hint.empty()) hint = " It can be " + comma_list(known) + ".";
  return what + " \"" + word + "\" is none of Caffe's." + hint;
}

void check_policy(const solver_source& s) {
  const auto& spec = s.spec;
  const auto& policy = spec.lr_policy();
  if (policy.empty())
    throw spec_error(s.at("base_lr"),
                     "lr_policy is missing. It can be " + comma_list(lr_policies()) + ".");
  require(contains(lr_policies(), policy), s.at("lr_policy"),
          unknown("lr_policy", policy, lr_policies()));
  const auto needs = [&](bool holds, const std::string& text) {
    require(holds, s.at("lr_policy"), "lr_policy \"" + policy + "\" needs " + text);
  };
  if (policy == "step" || policy == "sigmoid")
    needs(spec.stepsize() > 0,
          "a stepsize above 0, here it is " + std::to_string(spec.stepsize()) + ".");
  if (policy == "poly")
    needs(spec.max_iter() > 0,
          "a max_iter above 0, here it is " + std::to_string(spec.max_iter()) + ".");
  if (policy != "fixed" && policy != "poly")
    needs(spec.gamma() >= 0,
          "a gamma that is not negative, here it is " + plain_number(spec.gamma()) + ".");
  for (int i = 1; i < spec.stepvalue_size(); ++i)
    require(spec.stepvalue(i) > spec.stepvalue(i - 1), s.at("stepvalue", i),
            "stepvalue " + std::to_string(spec.stepvalue(i)) + " follows " +
                std::to_string(spec.stepvalue(i - 1)) + ". They must rise.");
}

void check_rule(const solver_source& s) {
  const auto& spec = s.spec;
  require(contains(solver_types(), spec.type()), s.at("type"),
          unknown("type", spec.type(), solver_types()));
  if (spec.type() == "AdaGrad" || spec.type() == "RMSProp")
    require(spec.momentum() == 0, s.at("momentum"),
            "momentum is " + plain_number(spec.momentum()) + ", but " + spec.type() +
                " has none. Delete it, or use type: \"SGD\".");
  if (spec.type() == "RMSProp")
    require(
        spec.rms_decay() >= 0 && spec.rms_decay() < 1, s.at("rms_decay"),
        "rms_decay is " + plain_number(spec.rms_decay()) + ", it must be at least 0 and below 1.");
  const std::vector<std::string> norms{"L1", "L2"};
  if (spec.weight_decay() != 0)
    require(contains(norms, spec.regularization_type()), s.at("regularization_type"),
            "regularization_type \"" + spec.regularization_type() +
                "\" is none of Caffe's. It can be L1, L2.");
}

void check_counts(const solver_source& s) {
  const auto at_least_one = [&](const char* field, std::int64_t value) {
    require(value >= 1, s.at(field),
            std::string(field) + " is " + std::to_string(value) + ", it must be at least 1.");
  };
  at_least_one("iter_size", s.spec.iter_size());
  at_least_one("average_loss", s.spec.average_loss());
  for (int i = 0; i < s.spec.test_iter_size(); ++i)
    require(s.spec.test_iter(i) > 0, s.at("test_iter", i),
            "test_iter is " + std::to_string(s.spec.test_iter(i)) + ", it must be at least 1.");
  const auto staleness = s.spec.poseidon().staleness();
  require(
      staleness <= max_staleness, s.at("poseidon"),
      "staleness is " + std::to_string(staleness) + ", it can be 0 to " +
          std::to_string(max_staleness) +
          ": every clock of it costs a node the memory of the parameters and gradients once more.");
  for (const auto& [field, value] : {std::pair{"max_iter", s.spec.max_iter()},
                                     {"snapshot", s.spec.snapshot()},
                                     {"display", s.spec.display()},
                                     {"test_interval", s.spec.test_interval()}})
    require(value >= 0, s.at(field),
            std::string(field) + " is " + std::to_string(value) + ", it cannot be negative.");
}

/// Relative to the working directory, as in Caffe, or else to the solver's folder.
std::filesystem::path find_file(const std::filesystem::path& name, const solver_source& s,
                                const char* field, int index) {
  std::error_code ignored;
  if (std::filesystem::exists(name, ignored)) return name;
  const auto beside = s.folder / name;
  if (std::filesystem::exists(beside, ignored)) return beside;
  throw spec_error(s.at(field, index),
                   std::string(field) + " \"" + name.string() +
                       "\": there is no such file, neither in " +
                       std::filesystem::current_path(ignored).string() + " nor beside the solver" +
                       (s.folder.empty() ? "" : " in " + s.folder.string()) + ".");
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
  check_rule(s);
  check_policy(s);
  check_counts(s);
  solver_file file;
  file.spec = s.spec;
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
  parse_text(read_spec_text(path), path.string(), spec, lines);
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
