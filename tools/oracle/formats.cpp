// tools/oracle/formats.cpp - Caffe's files: how they are read, the layers of each phase, the layers that run
// backward.
#include "models/files/snapshot.hpp"
#include "models/files/snapshot_io.hpp"
#include "models/solver/solver_file.hpp"
#include "models/spec/net_file.hpp"
#include "models/spec/text_format.hpp"
#include "models/spec/upgrade.hpp"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <map>
#include <unistd.h>

#include "tools/oracle/manifest.hpp"
#include "tools/oracle/one_pass.hpp"

namespace poseidon::oracle {

namespace {

namespace fs = std::filesystem;
namespace pb = google::protobuf;
using failure = std::optional<std::string>;

template <class Message>
Message parsed(const fs::path& path) {
  Message message;
  field_lines lines;
  parse_text(read_spec_text(path), path.string(), message, lines);
  return message;
}

failure differences(const pb::Message& ours, const pb::Message& caffe, const std::string& what) {
  pb::util::MessageDifferencer differ;
  std::string text;
  differ.ReportDifferencesToString(&text);
  if (differ.Compare(caffe, ours)) return std::nullopt;
  return what + " differs: " + text.substr(0, text.find('\n'));
}

failure upgrade(const json&) {
  return differences(read_net("v1.prototxt").spec, parsed<::caffe::NetParameter>("v2.prototxt"),
                     "v1.prototxt");
}

failure solver_upgrade(const json&) {
  auto ours = parsed<::caffe::SolverParameter>("old.prototxt");
  upgrade_solver(ours, {"old.prototxt", 0});
  return differences(ours, parsed<::caffe::SolverParameter>("new.prototxt"), "old.prototxt");
}

failure parser(const json&) {
  return differences(read_net("net.prototxt").spec, read_net("canonical.prototxt").spec,
                     "net.prototxt");
}

/// The layers that have blobs, by name.
std::map<std::string, std::vector<std::vector<float>>> weights_of(const fs::path& path) {
  std::map<std::string, std::vector<std::vector<float>>> weights;
  const auto file = read_caffemodel(path);
  for (const auto& layer : file.layer())
    for (const auto& blob : layer.blobs())
      weights[layer.name()].emplace_back(blob.data().begin(), blob.data().end());
  return weights;
}

/// Every file of the case gives the stored output for the stored input.
failure same_output(const json& one) {
  const auto tolerance = number(one, "tolerance", 1e-4);
  const auto input = read_blob("input.binaryproto"), output = read_blob("output.binaryproto");
  for (const std::string spec : {"v1.prototxt", "v2.prototxt"})
    for (const std::string file : {"v1.caffemodel", "v2.caffemodel", "v2_upgraded.caffemodel"}) {
      if (weights_of(file) != weights_of("v1.caffemodel"))
        return file + " holds other weights than v1.caffemodel";
      const auto n = build_with_data(read_net(spec), {::caffe::TEST, 0, {}});
      parameter_arrays values;
      copy_weights(read_caffemodel(file), file, n, values);
      one_pass run(n, values);
      run.forward({{"data", {input.data().begin(), input.data().end()}}});
      const auto name = n.blobs[n.outputs.at(0)].name;
      if (auto f = deviation(spec + " with " + file + ": " + name, run.data(name),
                             {output.data().data(), static_cast<std::size_t>(output.data_size())},
                             tolerance))
        return f;
    }
  return std::nullopt;
}

failure transplant(const json&) {
  const auto n = build_net(read_net("net.prototxt"), {{::caffe::TEST, 0, {}}, {}, 1});
  parameter_arrays values;
  copy_weights(read_caffemodel("before.caffemodel"), "before.caffemodel", n, values);
  copy_weights(read_caffemodel("source.caffemodel"), "source.caffemodel", n, values);
  parameter_arrays wanted;
  copy_weights(read_caffemodel("after.caffemodel"), "after.caffemodel", n, wanted);
  for (std::size_t p = 0; p < values.size(); ++p)
    if (auto f = deviation(n.parameters[p].name, values[p], wanted[p], 0)) return f;
  return std::nullopt;
}

failure weights(const json& one) {
  return fs::exists("v1.caffemodel") ? same_output(one) : transplant(one);
}

failure arrays_differ(const std::string& what, const parameter_arrays& ours,
                      const parameter_arrays& caffe) {
  if (ours.size() != caffe.size()) return what + ": another number of parameters";
  for (std::size_t p = 0; p < ours.size(); ++p)
    if (auto f = deviation(what + " of parameter " + std::to_string(p), ours[p], caffe[p], 0))
      return f;
  return std::nullopt;
}

/// Caffe's HDF5 files hold what its binary ones hold; so do ours, written from those and read back.
failure hdf5(const json&) {
  const auto stem = [] {
    for (const auto& file : fs::directory_iterator("."))
      if (file.path().extension() == ".caffemodel") return file.path().stem().string();
    throw std::runtime_error("the case has no .caffemodel");
  }();
  const auto n = build_with_data(read_net("net.prototxt"), {});
  const auto rule = rule_of(read_solver("solver.prototxt").spec).kind;
  const auto slots = history_count(rule);
  const auto weights_in = [&](const std::string& file) {
    parameter_arrays values;
    copy_weights(read_caffemodel(file), file, n, values);
    return values;
  };
  const auto caffe_weights = weights_in(stem + ".caffemodel");
  const auto caffe_state = read_solverstate(stem + ".solverstate", n, rule);
  const auto same = [&](const std::string& files) -> failure {
    if (auto f = arrays_differ(files, weights_in(files + ".caffemodel.h5"), caffe_weights))
      return f;
    const auto state = read_solverstate(files + ".solverstate.h5", n, rule);
    if (state.iteration != caffe_state.iteration || state.current_step != caffe_state.current_step)
      return files + ".solverstate.h5: another iteration or step";
    for (std::size_t slot = 0; slot < slots; ++slot)
      if (auto f =
              arrays_differ(files + " history", state.history[slot], caffe_state.history[slot]))
        return f;
    return std::nullopt;
  };
  if (auto f = same(stem)) return f;
  const auto folder = fs::temp_directory_path() / ("poseidon-oracle-" + std::to_string(::getpid()));
  fs::create_directory(folder);
  const auto ours = (folder / "ours").string();
  write_weights(ours, ::caffe::SolverParameter::HDF5, n, caffe_weights);
  write_state(ours, ::caffe::SolverParameter::HDF5, n, caffe_state);
  const auto difference = same(ours);
  fs::remove_all(folder);
  return difference;
}

net_state state_of(const json& one) {
  net_state state{text(one, "phase") == "TEST" ? ::caffe::TEST : ::caffe::TRAIN,
                  static_cast<int>(number(one, "level")),
                  {}};
  for (const auto& stage : elements(one, "stage")) state.stages.push_back(stage.string_value());
  return state;
}

failure filter(const json&) {
  const auto file = read_net("net.prototxt");
  const auto states = read_json("states.json");
  for (const auto& one : states.list_value().values()) {
    const auto filtered = filter_net(file, state_of(one));
    for (const auto& [name, ours] : {std::pair{text(one, "filtered"), filtered},
                                     std::pair{text(one, "split"), insert_splits(filtered)}})
      if (auto f = differences(ours.spec, parsed<::caffe::NetParameter>(name), name)) return f;
  }
  return std::nullopt;
}

std::vector<bool> flags_of(const json& one, const std::string& name) {
  std::vector<bool> flags;
  for (const auto& element : elements(one, name)) flags.push_back(element.bool_value());
  return flags;
}

failure layer_flags(const net& n, const json& wanted) {
  const auto& layers = elements(wanted, "layers");
  if (layers.size() != static_cast<int>(n.layers.size()))
    return "the net has " + std::to_string(n.layers.size()) + " layers, Caffe's has " +
           std::to_string(layers.size());
  for (int i = 0; i < layers.size(); ++i) {
    const auto& ours = n.layers[static_cast<std::size_t>(i)];
    const auto& theirs = layers[i];
    const auto which = "layer " + std::to_string(i) + " \"" + ours.name + "\": ";
    if (ours.name != text(theirs, "name"))
      return which + "Caffe has \"" + text(theirs, "name") + "\"";
    if (ours.needs_backward != flag(theirs, "need_backward"))
      return which + "needs_backward is " + std::to_string(ours.needs_backward) +
             ", Caffe has the opposite";
    if (ours.propagate_down != flags_of(theirs, "bottom_need_backward"))
      return which + "propagate_down differs";
    if (ours.learn != flags_of(theirs, "param_propagate_down")) return which + "learn differs";
  }
  return std::nullopt;
}

/// Caffe lists a parameter once per layer that uses it, with the place in this list of its owner.
failure parameter_flags(const net& n, const json& wanted) {
  const auto& params = elements(wanted, "params");
  int place = 0;
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    for (std::size_t slot = 0; slot < n.layers[l].parameters.size(); ++slot, ++place) {
      const auto which = "\"" + n.layers[l].name + "\" parameter " + std::to_string(slot) + ": ";
      if (place >= params.size()) return which + "Caffe has no more parameters";
      const auto index = n.layers[l].parameters[slot];
      const auto& p = n.parameters[index];
      const auto& theirs = params[place];
      if (static_cast<double>(index) != number(theirs, "learnable_id"))
        return which + "another learnable id";
      const bool owned = p.layer == l && p.slot == slot;
      if (owned != (number(theirs, "owner") == -1)) return which + "another owner";
      if (p.lr_mult != static_cast<float>(number(theirs, "lr_mult")) ||
          p.decay_mult != static_cast<float>(number(theirs, "decay_mult")))
        return which + "another lr_mult or decay_mult";
      shape extents;
      for (const auto& extent : elements(theirs, "shape"))
        extents.push_back(static_cast<std::int64_t>(extent.number_value()));
      if (owned && extents != p.shape)
        return which + to_string(p.shape) + ", Caffe has " + to_string(extents);
    }
  if (place != params.size())
    return "Caffe has " + std::to_string(params.size()) + " parameters, here are " +
           std::to_string(place);
  return std::nullopt;
}

failure flags(const json&) {
  const auto n = build_net(read_net("net.prototxt"), {});
  const auto wanted = read_json("flags.json");
  if (auto f = layer_flags(n, wanted)) return f;
  std::vector<std::string> ours, theirs;
  for (const auto blob : n.outputs) ours.push_back(n.blobs[blob].name);
  for (const auto& output : elements(wanted, "outputs")) theirs.push_back(output.string_value());
  if (ours != theirs) return "other outputs than Caffe's, or another order";
  return parameter_flags(n, wanted);
}

failure mean(const json&) {
  const auto blob = read_blob("mean.binaryproto");
  if (shape_of(blob).size() != 4) return "mean.binaryproto has not 4 axes";
  if (count(shape_of(blob)) != blob.data_size())
    return "mean.binaryproto has " + std::to_string(blob.data_size()) + " values for " +
           to_string(shape_of(blob));
  return std::nullopt;
}

failure check_format(const json& one) {
  static constexpr std::pair<const char*, failure (*)(const json&)> kinds[] = {
      {"upgrade", upgrade}, {"solver_upgrade", solver_upgrade},
      {"parser", parser},   {"weights", weights},
      {"hdf5", hdf5},       {"filter", filter},
      {"flags", flags},     {"mean", mean}};
  for (const auto& [kind, run] : kinds)
    if (text(one, "kind") == kind) return run(one);
  return "unknown kind \"" + text(one, "kind") + "\"";
}

}  // namespace

std::vector<result> run_format_cases(const fs::path& directory) {
  std::vector<result> results;
  for (const auto& one : cases_of(directory, "formats"))
    results.push_back(run_case(directory, one, check_format));
  return results;
}

}  // namespace poseidon::oracle
