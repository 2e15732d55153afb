// Data layers: the batches that Caffe delivered from the same LMDBs.
#include "data/batch_filler.hpp"
#include "data/source.hpp"
#include "models/spec/net_file.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "tools/oracle/cases.hpp"
#include "tools/oracle/manifest.hpp"

namespace poseidon::oracle {
namespace {

/// The difference between our k-th batch and Caffe's, top by top.
std::optional<std::string> compare_batch(const json& one, int k, const sample_source& source,
                                         std::int64_t samples) {
  batch ours;
  fill_batch(source, static_cast<std::uint64_t>(k * samples), samples, ours);
  const auto& tops = elements(one, "tops");
  if (static_cast<std::size_t>(tops.size()) != ours.tops.size())
    return "has " + std::to_string(ours.tops.size()) + " tops, Caffe has " +
           std::to_string(tops.size());
  for (int t = 0; t < tops.size(); ++t) {
    const auto name = "batch" + std::to_string(k) + "_" + tops[t].string_value();
    const auto theirs = read_blob(name + ".binaryproto");
    shape wanted(theirs.shape().dim().begin(), theirs.shape().dim().end());
    shape got = source.sample_shapes()[static_cast<std::size_t>(t)];
    got.insert(got.begin(), samples);
    if (got != wanted) return name + " is " + to_string(got) + ", Caffe has " + to_string(wanted);
    if (auto worst = deviation(name, ours.tops[static_cast<std::size_t>(t)],
                               {theirs.data().data(), static_cast<std::size_t>(theirs.data_size())},
                               number(one, "tolerance", 1e-6)))
      return worst;
  }
  return std::nullopt;
}

/// Runs in the case's folder.
std::optional<std::string> check_data_layer(const json& one) {
  const auto file = read_net("net.prototxt");
  if (file.spec.layer_size() != 1)
    return "net.prototxt has " + std::to_string(file.spec.layer_size()) + " layers, expected one";
  source_options options;
  options.directory = file.directory;
  options.phase = file.spec.state().phase();
  const auto& layer = file.spec.layer(0);
  const auto source = open_source(layer, file.layer_places[0], options);
  const auto samples = batch_size(layer, file.layer_places[0]);
  const int batches = static_cast<int>(number(one, "batches"));
  if (batches < 1) return "the manifest lists no batches";
  for (int k = 0; k < batches; ++k)
    if (auto wrong = compare_batch(one, k, *source, samples)) return wrong;
  return std::nullopt;
}
}  // namespace

std::vector<result> run_data_cases(const std::filesystem::path& directory) {
  std::vector<result> results;
  for (const auto& one : cases_of(directory, "datalayers"))
    results.push_back(run_case(directory, one, check_data_layer));
  return results;
}

}  // namespace poseidon::oracle
