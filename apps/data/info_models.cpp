#include "apps/data/info.hpp"
#include "models/files/hdf5_file.hpp"
#include "models/files/snapshot.hpp"
#include "models/files/snapshot_hdf5.hpp"
#include "models/files/snapshot_io.hpp"
#include "models/words.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <stdexcept>

namespace poseidon::app {
namespace {
namespace fs = std::filesystem;

/// The number of values of a blob, from whichever of its four lists holds them.
std::uint64_t values_of(const ::caffe::BlobProto& blob) {
  return static_cast<std::uint64_t>(blob.data_size() + blob.double_data_size());
}

/// Counts values that are not finite, which would spread through the whole net.
std::uint64_t nonfinite(const ::caffe::BlobProto& blob) {
  const auto bad = [](double v) { return !std::isfinite(v); };
  return static_cast<std::uint64_t>(
      std::count_if(blob.data().begin(), blob.data().end(), bad) +
      std::count_if(blob.double_data().begin(), blob.double_data().end(), bad));
}

using google::protobuf::internal::WireFormatLite;

/// Recognises which of Caffe's messages a file holds by its outermost fields alone: parsing it as the wrong message would
/// copy hundreds of megabytes of unknown fields.
enum class message_kind { none, net_v1, net_v2, state, blob };

/// Numbers and wire types of the outermost fields; empty for what is no protobuf message.
std::set<std::uint32_t> outer_tags(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  google::protobuf::io::IstreamInputStream stream(&file);
  google::protobuf::io::CodedInputStream in(&stream);
  in.SetTotalBytesLimit(std::numeric_limits<int>::max());
  std::set<std::uint32_t> tags;
  while (const auto tag = in.ReadTag()) {
    tags.insert(tag);
    if (!WireFormatLite::SkipField(&in, tag)) return {};
  }
  return in.ConsumedEntireMessage() ? tags : std::set<std::uint32_t>{};
}

message_kind kind_of(const fs::path& path) {
  const auto tags = outer_tags(path);
  const auto has = [&](int field, WireFormatLite::WireType type) {
    return tags.count(WireFormatLite::MakeTag(field, type)) > 0;
  };
  constexpr auto number = WireFormatLite::WIRETYPE_VARINT;
  constexpr auto bytes = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  // Field numbers of models/caffe.proto: NetParameter's layer and layers, SolverState's iter with learned_net or history,
  // BlobProto's data or double_data.
  if (has(100, bytes)) return message_kind::net_v2;
  if (has(1, number) && (has(2, bytes) || has(3, bytes))) return message_kind::state;
  if (has(2, bytes)) return message_kind::net_v1;
  if (has(5, bytes) || has(5, WireFormatLite::WIRETYPE_FIXED32) || has(8, bytes) ||
      has(8, WireFormatLite::WIRETYPE_FIXED64))
    return message_kind::blob;
  return message_kind::none;
}

facts blob_facts(const fs::path& path) {
  ::caffe::BlobProto blob;
  read_message(path, "values of a blob (a mean image)", blob);
  const auto extents = shape_of(blob);
  const bool is_mean = extents.size() == 4 && extents[0] == 1;
  facts found(path.string(), is_mean ? "BlobProto: one image, as a mean image is" : "BlobProto");
  std::vector<double> values(blob.data().begin(), blob.data().end());
  if (values.empty()) values.assign(blob.double_data().begin(), blob.double_data().end());
  const auto wanted = checked_count(extents);
  if (values.empty() || !wanted || *wanted != static_cast<std::int64_t>(values.size()))
    throw std::runtime_error(path.string() + ": a BlobProto that says it is " + to_string(extents) +
                             " and has " + std::to_string(values.size()) + " values.");
  found.add("shape", extents);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  double sum = 0;
  for (const double v : values) sum += v;
  found.add("least", *least);
  found.add("largest", *most);
  found.add("mean", sum / static_cast<double>(values.size()));
  if (const auto bad = nonfinite(blob); bad > 0) found.add("NaN or infinite", bad);
  if (is_mean) {
    const auto channels = static_cast<std::size_t>(extents[1]);
    const auto each = values.size() / channels;
    std::vector<std::vector<fact>> rows;
    for (std::size_t c = 0; c < channels; ++c) {
      double of_channel = 0;
      for (std::size_t i = 0; i < each; ++i) of_channel += values[c * each + i];
      rows.push_back({c, of_channel / static_cast<double>(each)});
    }
    found.add_table("channel means", {"channel", "mean_value"}, std::move(rows));
  }
  return found;
}

std::string format_of(const fs::path& path) {
  if (is_hdf5(path)) return "HDF5";
  return kind_of(path) == message_kind::net_v1 ? "V1" : "V2";
}

}  // namespace

facts weights_facts(const fs::path& path) {
  const auto net = read_caffemodel(path);
  facts found(path.string(), "weights (.caffemodel)");
  std::vector<std::vector<fact>> rows;
  std::uint64_t parameters = 0, bad = 0;
  for (const auto& layer : net.layer()) {
    std::vector<std::string> shapes;
    std::uint64_t of_layer = 0;
    for (const auto& blob : layer.blobs()) {
      shapes.push_back(to_string(shape_of(blob)));
      of_layer += values_of(blob);
      bad += nonfinite(blob);
    }
    parameters += of_layer;
    if (!shapes.empty()) rows.push_back({layer.name(), layer.type(), shapes, of_layer});
  }
  if (!net.name().empty()) found.add("net", net.name());
  found.add("format", format_of(path));
  found.add("layers", {std::to_string(net.layer_size()) + ", " + std::to_string(rows.size()) +
                           " with parameters",
                       std::to_string(net.layer_size())});
  found.add("parameters", parameters);
  if (bad > 0) found.add("NaN or infinite", bad);
  found.add("size", bytes_fact(fs::file_size(path)));
  found.add_table("blobs", {"layer", "type", "shapes", "parameters"}, std::move(rows));
  return found;
}

facts state_facts(const fs::path& path) {
  ::caffe::SolverState state;
  if (is_hdf5(path))
    state = hdf5_state(hdf5_reader(path));
  else
    read_message(path, "solver state", state);
  facts found(path.string(), "solver state (.solverstate)");
  found.add("iteration", state.iter());
  found.add("current step", state.current_step());
  found.add("weights", state.learned_net());
  if (state.has_poseidon()) {
    found.add("samples used", state.poseidon().samples());
    found.add("test phases", state.poseidon().test_phases());
    if (state.poseidon().has_rule()) found.add("solver", state.poseidon().rule());
    if (state.poseidon().has_global_batch())
      found.add("samples of an iteration", state.poseidon().global_batch());
  }
  found.add("history blobs", state.history_size());
  std::vector<std::vector<fact>> rows;
  std::uint64_t values = 0, bad = 0;
  for (int i = 0; i < state.history_size(); ++i) {
    const auto of_blob = values_of(state.history(i));
    rows.push_back({i, shape_of(state.history(i)), of_blob});
    values += of_blob;
    bad += nonfinite(state.history(i));
  }
  found.add("history values", values);
  if (bad > 0) found.add("NaN or infinite", bad);
  found.add("format", is_hdf5(path) ? "HDF5" : "binary");
  found.add("size", bytes_fact(fs::file_size(path)));
  found.add_table("history", {"blob", "shape", "values"}, std::move(rows));
  return found;
}

facts message_facts(const fs::path& path) {
  const auto kind = kind_of(path);
  if (kind == message_kind::net_v1 || kind == message_kind::net_v2) return weights_facts(path);
  if (kind == message_kind::state) return state_facts(path);
  if (kind == message_kind::blob) return blob_facts(path);
  // The file may be damaged. The reader of the kind that its name suggests gives the best error.
  const auto ending = path.extension().string();
  if (ending == ".caffemodel") return weights_facts(path);
  if (ending == ".solverstate") return state_facts(path);
  if (ending == ".binaryproto") return blob_facts(path);
  throw std::runtime_error(path.string() +
                           ": of no kind that is known: neither LMDB, LevelDB, IDX, HDF5, NumPy "
                           "array, JPEG, PNG, WebP, TIFF, BMP, PPM or "
                           "PGM, nor weights, solver state or blob of Caffe's, nor text. If it is "
                           "one of these, it is damaged.");
}

}  // namespace poseidon::app
