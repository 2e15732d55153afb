// HDF5Output: what Caffe's layer writes in its one pass, and every further pass behind it.
#include "cpu/cpu_device.hpp"
#include "models/files/hdf5_file.hpp"
#include "models/net/net_builder.hpp"
#include "tests/folder.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

std::string net_text(const std::string& options, const std::vector<int>& label = {2}) {
  return test::input("x", {2, 3}) + test::input("y", label) +
         "layer { name: \"out\" type: \"HDF5Output\" bottom: \"x\" bottom: \"y\" " + options + " }";
}

std::string refusal(const std::string& text) {
  const auto n = test::build(text);
  try {
    (void)make_cpu_device()->make_replica(n, {}, {});
    return {};
  } catch (const spec_error& e) {
    return e.what();
  }
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("hdf5 output: data and label of every pass, one behind the other, of four axes") {
  const test::temporary_folder folder;
  const auto path = folder.path() / "out.h5";
  const auto n =
      test::build(net_text("hdf5_output_param { file_name: \"" + path.string() + "\" }"));
  const auto device = make_cpu_device();
  device->arithmetic()->enter_thread(1);
  const auto replica = device->make_replica(n, {}, {});
  CHECK_FALSE(std::filesystem::exists(path));
  for (int i = 0; i < 3; ++i) {
    const auto v = static_cast<float>(10 * i);
    batch x{0, {{v, v + 1, v + 2, v + 3, v + 4, v + 5}}}, y{0, {{v + 6, v + 7}}};
    replica->at(0).feed(x);
    replica->at(1).feed(y);
    for (std::size_t layer = 0; layer < n.layers.size(); ++layer) replica->at(layer).forward({});
    // The file is whole after each pass, while the layer still has it.
    const hdf5_reader file(path);
    std::vector<float> data, label;
    CHECK(file.read("data", data) == shape{2 * (i + 1), 3, 1, 1});
    CHECK(file.read("label", label) == shape{2 * (i + 1), 1, 1, 1});
    CHECK(data[static_cast<std::size_t>(6 * i + 4)] == v + 4);
    CHECK(label.back() == v + 7);
    CHECK(data[0] == 0);
  }
}

TEST_CASE("hdf5 output: what cannot be written is refused before training") {
  CHECK(has(refusal(net_text("")), "layer \"out\" (HDF5Output): has no hdf5_output_param"));
  CHECK(has(refusal(net_text("hdf5_output_param { file_name: \"f\" }", {3})),
            "bottom 0 has 2 samples, bottom 1 has 3."));
  const auto n = test::build(net_text("hdf5_output_param { file_name: \"/none/out.h5\" }"));
  const auto device = make_cpu_device();
  device->arithmetic()->enter_thread(1);
  const auto replica = device->make_replica(n, {}, {});
  batch x, y;
  x.tops.emplace_back(6);
  y.tops.emplace_back(2);
  replica->at(0).feed(x);
  replica->at(1).feed(y);
  replica->at(0).forward({});
  replica->at(1).forward({});
  try {
    replica->at(2).forward({});
    FAIL("wrote to /none");
  } catch (const std::runtime_error& e) {
    CHECK(has(e.what(), "/none/out.h5: cannot make this HDF5 file: "));
  }
}
