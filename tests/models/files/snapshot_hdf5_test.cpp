// HDF5 snapshots: Caffe's layout, byte for value the same as the binary ones, and what is wrong
// with a file is said before anything of it is used.
#include "models/files/snapshot_hdf5.hpp"

#include "models/files/atomic_file.hpp"
#include "models/net/fillers.hpp"
#include "tests/folder.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

#include <functional>

using namespace poseidon;

namespace {

constexpr auto hdf5 = ::caffe::SolverParameter::HDF5;

net small_net(int out = 3) {
  return test::build(test::input("x", {2, 4}) +
                     test::layer("fc/7x7", "InnerProduct", "x", "a",
                                 "inner_product_param { num_output: " + std::to_string(out) +
                                     " weight_filler { type: \"xavier\" } }") +
                     test::layer("b", "Scale", "a", "b", "scale_param { num_axes: 0 }"));
}

parameter_arrays values_of(const net& n) {
  parameter_arrays values;
  for (std::uint32_t p = 0; p < n.parameters.size(); ++p) {
    values.emplace_back(static_cast<std::size_t>(count(n.parameters[p].shape)));
    fill(n.parameters[p], p, 7, values.back());
  }
  return values;
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
    return {};
  } catch (const spec_error& e) {
    return e.what();
  }
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string stem(const test::temporary_folder& folder) {
  return (folder.path() / "s").string();
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("hdf5 weights: written where Caffe reads them, and back as they were") {
  const test::temporary_folder folder;
  const auto n = small_net();
  const auto values = values_of(n);
  write_weights(stem(folder), hdf5, n, values);
  const auto path = folder.path() / "s.caffemodel.h5";
  const hdf5_reader file(path);
  CHECK(file.shape_of("data/fc/7x7/0") == shape{3, 4});
  CHECK(file.shape_of("data/fc/7x7/1") == shape{3});
  CHECK(file.shape_of("data/b/0").empty());
  CHECK(file.list("data").groups == std::vector<std::string>{"b", "fc", "x"});
  parameter_arrays copied;
  CHECK(copy_weights(read_caffemodel(path), "s", n, copied) ==
        std::vector<std::string>{"b", "fc/7x7"});
  CHECK(copied == values);
}

TEST_CASE("hdf5 weights: another shape is refused with both, as in a binary file") {
  const test::temporary_folder folder;
  const auto n = small_net();
  write_weights(stem(folder), hdf5, n, values_of(n));
  const auto stored = read_caffemodel(stem(folder) + ".caffemodel.h5");
  parameter_arrays values;
  CHECK(message_of([&] { copy_weights(stored, "w", small_net(5), values); }) ==
        "w: layer \"fc/7x7\" blob 0 has 3x4, the net needs 5x4. Rename the layer in the net to "
        "train it from scratch.");
}

TEST_CASE("hdf5 weights: a shared parameter is stored by its owner alone, and read for both") {
  const test::temporary_folder folder;
  const auto shares = [](const std::string& name, const std::string& bottom) {
    return test::layer(name, "InnerProduct", bottom, name,
                       "param { name: \"w\" } inner_product_param { num_output: 4 }");
  };
  const auto n = test::build(test::input("x", {2, 4}) + shares("a", "x") + shares("b", "a"));
  REQUIRE(n.parameters.size() == 3);
  parameter_arrays values{std::vector<float>(16, 2), {1, 2, 3, 4}, {5, 6, 7, 8}};
  write_weights(stem(folder), hdf5, n, values);
  const auto path = stem(folder) + ".caffemodel.h5";
  CHECK(hdf5_reader(path).list("data/b").datasets == std::vector<std::string>{"1"});
  parameter_arrays copied;
  CHECK(copy_weights(read_caffemodel(path), "s", n, copied) == std::vector<std::string>{"a", "b"});
  CHECK(copied == values);
  // A net without sharing has no owner to take the values from.
  const auto alone =
      test::build(test::input("x", {2, 4}) + test::layer("b", "InnerProduct", "x", "b",
                                                         "inner_product_param { num_output: 4 }"));
  CHECK(has(message_of([&] { copy_weights(read_caffemodel(path), "s", alone, copied); }),
            "s: layer \"b\" blob 0 has "));
}

TEST_CASE("hdf5 state: iteration, step, name of the weights and history come back") {
  const test::temporary_folder folder;
  const auto n = small_net();
  solver_state state{42, 2, "snap/w.caffemodel.h5", {values_of(n), values_of(n)}, {1ull << 40, 7}};
  for (auto& squares : state.history[1])
    for (auto& v : squares) v *= v;
  state.history[1][0][0] = 5;
  write_state(stem(folder), hdf5, n, state);
  const auto path = stem(folder) + ".solverstate.h5";
  const auto back = read_solverstate(path, n, rule_kind::adam);
  CHECK(back.iteration == 42);
  CHECK(back.current_step == 2);
  CHECK(back.learned_net == "snap/w.caffemodel.h5");
  CHECK(back.history == state.history);
  CHECK(read_resume_point(path).learned_net == "snap/w.caffemodel.h5");
  CHECK(hdf5_reader(path).shape_of("iter") == shape{1});
  CHECK(read_resume_point(path).data.samples == 1ull << 40);
  CHECK(read_resume_point(path).data.test_phases == 7);
  CHECK(read_resume_point(path).global_batch == 0);
  state.global_batch = 48;
  write_state(stem(folder), hdf5, n, state);
  CHECK(read_resume_point(path).global_batch == 48);
  CHECK(read_solverstate(path, n, rule_kind::adam).global_batch == 48);
  CHECK(has(message_of([&] { (void)read_solverstate(path, n, rule_kind::sgd); }),
            "it has 6 history blobs, the net and its solver need 3"));
}

TEST_CASE("hdf5: eleven histories are read by number, not in the order of their names") {
  const test::temporary_folder folder;
  hdf5_writer file;
  file.write_integer("iter", 1);
  for (int i = 0; i < 11; ++i) {
    const auto value = static_cast<float>(i);
    file.write("history/" + std::to_string(i), {1}, {&value, 1});
  }
  const auto image = file.image();
  const hdf5_reader reader({reinterpret_cast<const std::uint8_t*>(image.data()), image.size()},
                           "memory");
  const auto state = hdf5_state(reader);
  for (int i = 0; i < 11; ++i) CHECK(state.history(i).data(0) == static_cast<float>(i));
  CHECK(state.current_step() == 0);
}

TEST_CASE("hdf5: what cannot be read is named with its file and the reason") {
  const test::temporary_folder folder;
  const auto n = small_net();
  write_weights(stem(folder), hdf5, n, values_of(n));
  write_state(stem(folder), hdf5, n, {1, 0, "w", {values_of(n)}, {}});
  const auto weights = stem(folder) + ".caffemodel.h5", state = stem(folder) + ".solverstate.h5";
  const auto read = [](const std::filesystem::path& path) {
    return message_of([&] { (void)read_caffemodel(path); });
  };
  CHECK(read(folder.path() / "none.h5") ==
        (folder.path() / "none.h5").string() + ": there is no such file of weights.");
  CHECK(has(read(folder.write("text.h5", "name: \"lenet\"")),
            "text.h5: this is no HDF5 file: its 13 bytes have no signature of HDF5's at 0, 512, "
            "1024, ..."));
  const auto whole = text_of(weights);
  const auto cut = read(folder.write("cut.h5", whole.substr(0, whole.size() - 100)));
  CHECK(has(cut, "cut.h5: the HDF5 file cannot be opened: truncated file"));
  CHECK(has(cut, "copy it again"));
  CHECK(has(read(folder.write("head", whole.substr(0, 20))), "the HDF5 file cannot be opened"));
  CHECK(has(read(state), "no group \"data\", so it holds no weights of Caffe's; it is a solver"));
  CHECK(has(message_of([&] { (void)read_solverstate(weights, n, rule_kind::sgd); }),
            "no group \"history\", so it is no solver state of Caffe's; it holds weights."));

  const auto made = [&](const std::string& name, const std::function<void(hdf5_writer&)>& fill) {
    hdf5_writer file;
    fill(file);
    write_atomically(folder.path() / name, file.image());
    return folder.path() / name;
  };
  CHECK(has(read(made("names.h5", [](hdf5_writer& f) { f.write_integer("data/conv/weights", 1); })),
            "group \"data/conv\" has a dataset \"weights\"; Caffe numbers them 0, 1, 2, ..."));
  CHECK(has(read(made("text2.h5", [](hdf5_writer& f) { f.write_text("data/conv/0", "1"); })),
            "dataset \"data/conv/0\" holds strings; only integers and floats are read."));
  CHECK(
      has(read(made("empty.h5", [](hdf5_writer& f) { f.make_group("data"); })), "holds no layers"));
  const auto no_iteration =
      made("no_iteration.h5", [](hdf5_writer& f) { f.make_group("history"); });
  CHECK(has(message_of([&] { (void)read_resume_point(no_iteration); }),
            "dataset \"iter\" is not in this HDF5 file."));
}

TEST_CASE("hdf5: every single flipped byte of a small file is refused or read, never worse") {
  const auto n = small_net();
  const auto image = to_hdf5_weights(n, values_of(n));
  int refused = 0;
  for (std::size_t at = 0; at < image.size(); ++at) {
    std::vector<std::uint8_t> bytes(image.begin(), image.end());
    bytes[at] ^= 0x55;
    try {
      (void)hdf5_weights(hdf5_reader(bytes, "flipped"));
    } catch (const spec_error&) {
      ++refused;
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("hdf5: two files that are in memory at once are two files") {
  hdf5_writer one, two;
  one.write_integer("iter", 1);
  two.write_integer("iter", 2);
  const auto iteration = [](const hdf5_writer& w) {
    const auto image = w.image();
    return hdf5_reader({reinterpret_cast<const std::uint8_t*>(image.data()), image.size()}, "x")
        .read_integer("iter");
  };
  CHECK(iteration(one) == 1);
  CHECK(iteration(two) == 2);
}

TEST_CASE("hdf5: layers whose names exclude each other are refused before a file is touched") {
  auto n = small_net();
  for (auto& layer : n.layers)
    if (layer.name == "fc/7x7") layer.name = "b/0";
  CHECK_THROWS_AS((void)to_hdf5_weights(n, values_of(n)), std::invalid_argument);
}
