#include "models/files/snapshot_hdf5.hpp"

#include "models/words.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace poseidon {

namespace {

/// "12" -> 12.   Errors   spec_error: no number, or one that no file of `names` entries has.
std::size_t index_of(const std::string& name, std::size_t most, const std::string& group,
                     const hdf5_reader& file) {
  std::size_t index = 0;
  const auto end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, index);
  if (error != std::errc{} || stop != end || index >= most)
    throw spec_error({file.name(), 0}, "group \"" + group + "\" has a dataset \"" + name +
                                           "\"; Caffe numbers them 0, 1, 2, ...");
  return index;
}

void read_blob(const hdf5_reader& file, const std::string& dataset, ::caffe::BlobProto& blob) {
  std::vector<float> values;
  const auto extents = file.read(dataset, values);
  blob.mutable_shape();  // a scalar has a shape without extents
  for (const auto extent : extents) blob.mutable_shape()->add_dim(extent);
  blob.mutable_data()->Add(values.begin(), values.end());
}

/// Of weights and states nothing may be missing.
hdf5_links list_whole(const hdf5_reader& file, const std::string& group) {
  auto links = file.list(group);
  if (links.unreadable.empty()) return links;
  const auto& [name, reason] = links.unreadable.front();
  throw spec_error({file.name(), 0}, "group \"" + group + "\" has \"" + name +
                                         "\", which cannot be opened: " + reason +
                                         ". The file is damaged; copy it again.");
}

/// A group with datasets is a layer; groups in it are layers with longer names.
void read_layers(const hdf5_reader& file, const std::string& name, ::caffe::NetParameter& net) {
  constexpr std::size_t most_blobs = 64;  // Caffe's LSTM has 3, its BatchNorm 3
  constexpr auto deepest = 64;            // a link to a group above it would never end
  const auto group = name.empty() ? "data" : "data/" + name;
  if (std::count(group.begin(), group.end(), '/') > deepest)
    throw spec_error({file.name(), 0}, "group \"" + group + "\" is nested too deeply.");
  const auto links = list_whole(file, group);
  if (!name.empty() && (!links.datasets.empty() || links.groups.empty())) {
    auto& layer = *net.add_layer();
    layer.set_name(name);
    for (const auto& dataset : links.datasets) {
      const auto index = index_of(dataset, most_blobs, group, file);
      while (layer.blobs_size() <= static_cast<int>(index)) layer.add_blobs();
      read_blob(file, group + "/" + dataset, *layer.mutable_blobs(static_cast<int>(index)));
    }
  }
  for (const auto& inner : links.groups)
    read_layers(file, name.empty() ? inner : name + "/" + inner, net);
}

}  // namespace

::caffe::NetParameter hdf5_weights(const hdf5_reader& file) {
  if (!file.has("data"))
    throw spec_error({file.name(), 0},
                     "this HDF5 file has no group \"data\", so it holds no weights of Caffe's" +
                         std::string(file.has("history") ? "; it is a solver state." : "."));
  ::caffe::NetParameter net;
  read_layers(file, "", net);
  return net;
}

::caffe::SolverState hdf5_state(const hdf5_reader& file) {
  if (!file.has("history"))
    throw spec_error(
        {file.name(), 0},
        "this HDF5 file has no group \"history\", so it is no solver state of Caffe's" +
            std::string(file.has("data") ? "; it holds weights." : "."));
  const auto integer = [&](const char* name) {
    const auto value = file.read_integer(name);
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(
        value, -1, std::numeric_limits<std::int32_t>::max()));  // -1: the caller says it is damaged
  };
  ::caffe::SolverState state;
  state.set_iter(integer("iter"));
  if (file.has("current_step")) state.set_current_step(integer("current_step"));
  if (file.has("learned_net")) state.set_learned_net(file.read_text("learned_net"));
  const auto position = [&](const char* name) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(file.read_integer(name), 0));
  };
  if (file.has("poseidon/samples"))
    state.mutable_poseidon()->set_samples(position("poseidon/samples"));
  if (file.has("poseidon/test_phases"))
    state.mutable_poseidon()->set_test_phases(position("poseidon/test_phases"));
  if (file.has("poseidon/outer_steps"))
    state.mutable_poseidon()->set_outer_steps(
        static_cast<std::uint32_t>(position("poseidon/outer_steps")));
  if (file.has("poseidon/global_batch"))
    state.mutable_poseidon()->set_global_batch(position("poseidon/global_batch"));
  if (file.has("poseidon/rule"))
    state.mutable_poseidon()->set_rule(file.read_text("poseidon/rule"));
  const auto names = list_whole(file, "history").datasets;
  for (std::size_t i = 0; i < names.size(); ++i) state.add_history();
  for (const auto& name : names)
    read_blob(
        file, "history/" + name,
        *state.mutable_history(static_cast<int>(index_of(name, names.size(), "history", file))));
  return state;
}

std::vector<char> to_hdf5_weights(const net& n, const parameter_arrays& values) {
  hdf5_writer file;
  file.make_group("data");
  // Layers without slashes first, so that a group of one is not made on the way to another.
  for (const bool nested : {false, true})
    for (std::size_t l = 0; l < n.layers.size(); ++l) {
      const auto& layer = n.layers[l];
      if ((layer.name.find('/') != std::string::npos) != nested) continue;
      const auto group = "data/" + layer.name;
      if (!nested) file.make_group(group);
      for (std::size_t slot = 0; slot < layer.parameters.size(); ++slot) {
        const auto& p = n.parameters[layer.parameters[slot]];
        if (p.layer != l || p.slot != slot) continue;
        file.write(group + "/" + std::to_string(slot), p.shape, values.at(layer.parameters[slot]));
      }
    }
  return file.image();
}

std::vector<char> to_hdf5_state(const net& n, const solver_state& state) {
  const auto message = to_solverstate(n, state);  // the same limits
  hdf5_writer file;
  file.write_integer("iter", message.iter());
  file.write_text("learned_net", message.learned_net());
  file.write_integer("current_step", message.current_step());
  file.write_integer("poseidon/samples", static_cast<std::int64_t>(state.data.samples));
  file.write_integer("poseidon/test_phases", static_cast<std::int64_t>(state.data.test_phases));
  if (state.outer_steps > 0)
    file.write_integer("poseidon/outer_steps", static_cast<std::int64_t>(state.outer_steps));
  if (state.global_batch > 0)
    file.write_integer("poseidon/global_batch", static_cast<std::int64_t>(state.global_batch));
  if (!state.rule.empty()) file.write_text("poseidon/rule", state.rule);
  file.make_group("history");
  std::size_t index = 0;
  for (const auto& slot : state.history)
    for (std::size_t p = 0; p < n.parameters.size(); ++p)
      file.write("history/" + std::to_string(index++), n.parameters[p].shape, slot.at(p));
  return file.image();
}

}  // namespace poseidon
