// Between nets and Caffe's messages: weights by layer name, solver state by parameter. Files are
// snapshot_io.cpp's business.
#include "models/files/snapshot.hpp"

#include "models/files/atomic_file.hpp"
#include "models/files/hdf5_file.hpp"
#include "models/files/snapshot_hdf5.hpp"
#include "models/files/snapshot_io.hpp"
#include "models/files/state_rule.hpp"
#include "models/spec/upgrade.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <limits>

namespace poseidon {

namespace {

bool is_legacy(const ::caffe::BlobProto& blob) {
  return blob.has_num() || blob.has_channels() || blob.has_height() || blob.has_width();
}

/// Old blobs always have 4 extents; shorter shapes were padded with ones in front.
bool same_shape(const ::caffe::BlobProto& blob, const shape& wanted) {
  auto four = wanted;
  if (is_legacy(blob) && four.size() <= 4) four.insert(four.begin(), 4 - four.size(), 1);
  return shape_of(blob) == (is_legacy(blob) ? four : wanted);
}

void copy_values(const ::caffe::BlobProto& blob, std::span<float> to) {
  if (blob.double_data_size() > 0)
    std::copy(blob.double_data().begin(), blob.double_data().end(), to.begin());
  else
    std::copy(blob.data().begin(), blob.data().end(), to.begin());
}

std::size_t values_in(const ::caffe::BlobProto& blob) {
  return static_cast<std::size_t>(std::max(blob.data_size(), blob.double_data_size()));
}

/// `file: layer "fc6"` blob 0
void check_blob(const ::caffe::BlobProto& blob, const shape& wanted, const std::string& whose,
                const std::string& advice) {
  if (!same_shape(blob, wanted))
    throw spec_error(whose + " has " + to_string(shape_of(blob)) + ", the net needs " +
                     to_string(wanted) + "." + advice);
  if (values_in(blob) != static_cast<std::size_t>(count(wanted)))
    throw spec_error(whose + " has the shape " + to_string(shape_of(blob)) + " but " +
                     std::to_string(values_in(blob)) + " values instead of " +
                     std::to_string(count(wanted)) + ". The file is damaged.");
}

/// Decided by the content; a file that has HDF5's suffix and other content gets an error that says so.
bool in_hdf5(const std::filesystem::path& path) {
  return is_hdf5(path) || (path.extension() == ".h5" && std::filesystem::exists(path));
}

::caffe::SolverState read_state(const std::filesystem::path& path) {
  if (in_hdf5(path)) return hdf5_state(hdf5_reader(path));
  ::caffe::SolverState state;
  read_message(path, "solver state", state);
  return state;
}

/// Whether the layer leaves the blob to the owner of a shared parameter.
bool is_left_out(const ::caffe::LayerParameter& from, std::size_t slot) {
  if (static_cast<int>(slot) >= from.blobs_size()) return true;
  const auto& blob = from.blobs(static_cast<int>(slot));
  return !blob.has_shape() && !is_legacy(blob) && values_in(blob) == 0;
}

void write_blob(const shape& s, const std::vector<float>& values, ::caffe::BlobProto& blob) {
  if (static_cast<std::int64_t>(values.size()) != count(s))
    throw std::invalid_argument("a blob of the shape " + to_string(s) + " cannot hold " +
                                std::to_string(values.size()) + " values");
  blob.mutable_shape();  // a scalar has a shape without extents
  for (const auto extent : s) blob.mutable_shape()->add_dim(extent);
  blob.mutable_data()->Add(values.begin(), values.end());
}

}  // namespace

shape shape_of(const ::caffe::BlobProto& blob) {
  if (is_legacy(blob)) return {blob.num(), blob.channels(), blob.height(), blob.width()};
  return {blob.shape().dim().begin(), blob.shape().dim().end()};
}

::caffe::NetParameter read_caffemodel(const std::filesystem::path& path) {
  ::caffe::NetParameter net;
  if (in_hdf5(path)) {
    net = hdf5_weights(hdf5_reader(path));
  } else {
    read_message(path, "weights", net);
    std::vector<spec_position> places(
        static_cast<std::size_t>(std::max(net.layer_size(), net.layers_size())));
    upgrade_net(net, places, {path.string(), 0});
  }
  if (net.layer_size() == 0)
    throw spec_error({path.string(), 0},
                     "it can be read but holds no layers, so it is no .caffemodel.");
  return net;
}

namespace {

/// `place(parameter)` is where its values go; asked for only when they fit.
template <class Place>
std::vector<std::string> copy_weights_to(const ::caffe::NetParameter& from,
                                         const std::string& file_name, const net& n, Place place) {
  std::vector<std::string> copied;
  for (const auto& source : from.layer()) {
    const auto target = std::find_if(n.layers.begin(), n.layers.end(), [&](const net_layer& layer) {
      return layer.name == source.name();
    });
    if (target == n.layers.end()) continue;
    const auto whose = file_name + ": layer \"" + source.name() + "\"";
    const auto has = static_cast<std::size_t>(source.blobs_size()),
               needs = target->parameters.size();
    const auto is_left_to_owner = [&](std::size_t slot) {
      const auto owner = n.parameters[target->parameters[slot]].layer;
      return is_left_out(source, slot) &&
             owner != static_cast<std::size_t>(target - n.layers.begin());
    };
    bool others_are_owned = has < needs;
    for (auto slot = has; slot < needs; ++slot)
      others_are_owned = others_are_owned && is_left_to_owner(slot);
    if (has != needs && !others_are_owned)
      throw spec_error(whose + " has " + plural(has, "learned blob") + ", the net needs " +
                       std::to_string(needs) +
                       ". Rename the layer in the net to train it from scratch.");
    for (std::size_t slot = 0; slot < needs; ++slot) {
      if (is_left_to_owner(slot)) continue;
      const auto& blob = source.blobs(static_cast<int>(slot));
      check_blob(blob, target->parameter_shapes[slot],
                 needs == 1 ? whose : whose + " blob " + std::to_string(slot),
                 " Rename the layer in the net to train it from scratch.");
      copy_values(blob, place(target->parameters[slot]));
    }
    if (needs > 0) copied.push_back(source.name());
  }
  return copied;
}

}  // namespace

std::vector<std::string> copy_weights(const ::caffe::NetParameter& from,
                                      const std::string& file_name, const net& n,
                                      std::span<const std::span<float>> values) {
  return copy_weights_to(from, file_name, n, [&](std::size_t p) { return values[p]; });
}

std::vector<std::string> copy_weights(const ::caffe::NetParameter& from,
                                      const std::string& file_name, const net& n,
                                      parameter_arrays& values) {
  values.resize(n.parameters.size());
  return copy_weights_to(from, file_name, n, [&](std::size_t p) {
    values[p].resize(static_cast<std::size_t>(count(n.parameters[p].shape)));
    return std::span(values[p]);
  });
}

::caffe::NetParameter to_caffemodel(const net& n, const parameter_arrays& values) {
  ::caffe::NetParameter to;
  to.set_name(n.name);
  for (const auto& layer : n.layers) {
    auto& written = *to.add_layer();
    written = layer.spec;
    written.clear_blobs();
    for (std::size_t slot = 0; slot < layer.parameters.size(); ++slot)
      write_blob(layer.parameter_shapes[slot], values.at(layer.parameters[slot]),
                 *written.add_blobs());
  }
  return to;
}

namespace {

void check_iteration(const ::caffe::SolverState& state, const std::filesystem::path& path) {
  if (state.iter() < 0 || state.current_step() < 0)
    throw spec_error({path.string(), 0},
                     "its iteration is " + std::to_string(state.iter()) + ". The file is damaged.");
}

data_position position_of(const ::caffe::SolverState& state) {
  return {state.poseidon().samples(), state.poseidon().test_phases()};
}

}  // namespace

resume_point read_resume_point(const std::filesystem::path& path) {
  const auto from = read_state(path);
  check_iteration(from, path);
  return {static_cast<std::uint64_t>(from.iter()), from.learned_net(), position_of(from),
          from.poseidon().global_batch(), from.poseidon().outer_steps()};
}

solver_state read_solverstate(const std::filesystem::path& path, const net& n, rule_kind rule) {
  const auto from = read_state(path);
  check_rule(from, rule, path);
  const auto slots = history_count(rule);
  const auto parameters = n.parameters.size();
  const auto has = static_cast<std::size_t>(from.history_size());
  if (has != parameters * slots)
    throw spec_error({path.string(), 0},
                     "it has " + plural(has, "history blob") + ", the net and its solver need " +
                         std::to_string(parameters * slots) + " (" + std::to_string(slots) +
                         " for each of " + plural(parameters, "parameter") +
                         "). It belongs to another net or another type of solver.");
  check_iteration(from, path);
  solver_state state;
  state.iteration = static_cast<std::uint64_t>(from.iter());
  state.current_step = static_cast<std::uint64_t>(from.current_step());
  state.learned_net = from.learned_net();
  state.data = position_of(from);
  state.global_batch = from.poseidon().global_batch();
  state.rule = from.poseidon().rule();
  state.outer_steps = from.poseidon().outer_steps();
  state.history.assign(slots, parameter_arrays(parameters));
  for (std::size_t i = 0; i < has; ++i) {
    const auto& blob = from.history(static_cast<int>(i));
    const auto& parameter = n.parameters[i % parameters];
    check_blob(blob, parameter.shape,
               path.string() + ": history of parameter \"" + parameter.name + "\"", "");
    auto& to = state.history[i / parameters][i % parameters];
    to.resize(values_in(blob));
    copy_values(blob, to);
    check_squares(to, n, i % parameters, rule, i / parameters, path);
  }
  return state;
}

::caffe::SolverState to_solverstate(const net& n, const solver_state& state) {
  ::caffe::SolverState to;
  const auto as_int = [](std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
      throw std::invalid_argument("Caffe's files count iterations to 2^31, this is " +
                                  std::to_string(value));
    return static_cast<std::int32_t>(value);
  };
  to.set_iter(as_int(state.iteration));
  to.set_current_step(as_int(state.current_step));
  to.set_learned_net(state.learned_net);
  to.mutable_poseidon()->set_samples(state.data.samples);
  to.mutable_poseidon()->set_test_phases(state.data.test_phases);
  if (state.global_batch > 0) to.mutable_poseidon()->set_global_batch(state.global_batch);
  if (!state.rule.empty()) to.mutable_poseidon()->set_rule(state.rule);
  if (state.outer_steps > 0) to.mutable_poseidon()->set_outer_steps(state.outer_steps);
  for (const auto& slot : state.history)
    for (std::size_t p = 0; p < n.parameters.size(); ++p)
      write_blob(n.parameters[p].shape, slot.at(p), *to.add_history());
  return to;
}

namespace {

std::string with_suffix(const std::string& name, snapshot_format format) {
  return format == ::caffe::SolverParameter::HDF5 ? name + ".h5" : name;
}

}  // namespace

std::string weights_path(const std::string& stem, snapshot_format format) {
  return with_suffix(stem + ".caffemodel", format);
}

std::string state_path(const std::string& stem, snapshot_format format) {
  return with_suffix(stem + ".solverstate", format);
}

void write_weights(const std::string& stem, snapshot_format format, const net& n,
                   const parameter_arrays& values) {
  const auto path = weights_path(stem, format);
  if (format == ::caffe::SolverParameter::HDF5)
    write_atomically(path, to_hdf5_weights(n, values));
  else
    write_atomically(path, to_caffemodel(n, values));
}

void write_state(const std::string& stem, snapshot_format format, const net& n,
                 const solver_state& state) {
  const auto path = state_path(stem, format);
  if (format == ::caffe::SolverParameter::HDF5)
    write_atomically(path, to_hdf5_state(n, state));
  else
    write_atomically(path, to_solverstate(n, state));
}

}  // namespace poseidon
