// Every single-layer case of the reference set: the shapes of its tops and parameters are Caffe's.
#include "models/files/snapshot.hpp"
#include "models/files/snapshot_io.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace poseidon;
namespace fs = std::filesystem;

namespace {
shape stored_shape(const fs::path& file) {
  ::caffe::BlobProto blob;
  read_message(file, "blob", blob);
  return shape_of(blob);
}

/// In-place cases keep what comes out in another file.
fs::path file_of(const fs::path& folder, const std::string& blob) {
  const auto out = folder / (blob + ".out.binaryproto");
  return fs::exists(out) ? out : folder / (blob + ".binaryproto");
}
}  // namespace

TEST_CASE("layer_shapes: tops and parameters have Caffe's shapes in every reference case" *
          doctest::skip(test::oracle().empty())) {
  // How long the tops of Filter are, only the selector's values say.
  const std::set<std::string> by_value{"Filter"};
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(test::oracle() / "layers")) {
    CAPTURE(entry.path().filename().string());
    auto file = read_net(entry.path() / "net.prototxt");
    const auto n = build_net(file, {{file.spec.state().phase(), 0, {}}, {}, 1});
    const auto& under_test = test::named(n, "test");
    ++cases;
    for (int t = 0; t < under_test.spec.top_size(); ++t) {
      if (by_value.count(under_test.type) != 0) continue;
      CHECK(to_string(n.blobs[under_test.tops[static_cast<std::size_t>(t)]].shape) ==
            to_string(stored_shape(file_of(entry.path(), under_test.spec.top(t)))));
    }
    if (under_test.parameters.empty()) continue;
    const auto stored = read_caffemodel(entry.path() / "params.caffemodel");
    const auto& layer = stored.layer(stored.layer_size() - 1);
    REQUIRE(static_cast<std::size_t>(layer.blobs_size()) == under_test.parameters.size());
    for (int slot = 0; slot < layer.blobs_size(); ++slot)
      CHECK(to_string(n.parameters[under_test.parameters[static_cast<std::size_t>(slot)]].shape) ==
            to_string(shape_of(layer.blobs(slot))));
  }
  CHECK(cases >= 200);
}
