// Snapshots: what is written is read again, what is cut short says so, and a write that fails
// changes nothing.
#include "models/files/snapshot.hpp"

#include "models/files/snapshot_io.hpp"
#include "models/net/fillers.hpp"
#include "tests/folder.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <functional>
#include <sys/resource.h>

using namespace poseidon;
namespace fs = std::filesystem;

namespace {

net small_net(int out = 3, const std::string& param = {}) {
  return test::build(test::input("x", {2, 4}) +
                     test::layer("a", "InnerProduct", "x", "a",
                                 param +
                                     " inner_product_param { num_output: " + std::to_string(out) +
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
  } catch (const std::exception& e) {
    return e.what();
  }
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator{}));
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// While it lives, files of this process cannot grow past `bytes`: a full disk that needs no root.
class file_limit {
 public:
  explicit file_limit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~file_limit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

}  // namespace

TEST_CASE("snapshot: weights come back as they were, by layer name") {
  const test::temporary_folder folder;
  const auto n = small_net();
  const auto values = values_of(n);
  write_atomically(folder.path() / "w.caffemodel", to_caffemodel(n, values));
  CHECK(files_in(folder.path()) == 1);
  const auto stored = read_caffemodel(folder.path() / "w.caffemodel");
  CHECK(stored.layer_size() == 3);
  parameter_arrays copied;
  CHECK(copy_weights(stored, "w.caffemodel", n, copied) == std::vector<std::string>{"a", "b"});
  CHECK(copied == values);
}

TEST_CASE("snapshot: a layer of the same name and another shape is refused with both shapes") {
  const auto stored = to_caffemodel(small_net(), values_of(small_net()));
  parameter_arrays values;
  CHECK(message_of([&] { copy_weights(stored, "w.caffemodel", small_net(5), values); }) ==
        "w.caffemodel: layer \"a\" blob 0 has 3x4, the net needs 5x4. Rename the layer in the net "
        "to train it from scratch.");
  const auto without_bias =
      test::build(test::input("x", {2, 4}) +
                  test::layer("a", "InnerProduct", "x", "a",
                              "inner_product_param { num_output: 3 bias_term: false }"));
  CHECK(message_of([&] { copy_weights(stored, "w.caffemodel", without_bias, values); }) ==
        "w.caffemodel: layer \"a\" has 2 learned blobs, the net needs 1. Rename the layer in the "
        "net to train it from scratch.");
}

TEST_CASE("snapshot: old blobs of four extents fit the shapes that they stood for, and no others") {
  const auto n = small_net();
  auto stored = to_caffemodel(n, values_of(n));
  const auto make_old = [&](int num, int channels, int height, int width) {
    auto& blob = *stored.mutable_layer(1)->mutable_blobs(0);
    blob.clear_shape();
    blob.set_num(num), blob.set_channels(channels), blob.set_height(height), blob.set_width(width);
  };
  parameter_arrays values;
  make_old(1, 1, 3, 4);
  CHECK(message_of([&] { copy_weights(stored, "w", n, values); }).empty());
  make_old(3, 4, 1, 1);
  CHECK(message_of([&] {
          copy_weights(stored, "w", n, values);
        }).find("has 3x4x1x1, the net needs 3x4") != std::string::npos);
}

TEST_CASE("snapshot: a blob with fewer values than its shape is damaged, not half copied") {
  const auto n = small_net();
  auto stored = to_caffemodel(n, values_of(n));
  stored.mutable_layer(1)->mutable_blobs(0)->mutable_data()->Truncate(5);
  parameter_arrays values;
  CHECK(message_of([&] { copy_weights(stored, "w", n, values); }) ==
        "w: layer \"a\" blob 0 has the shape 3x4 but 5 values instead of 12. The file is damaged.");
}

TEST_CASE("snapshot: shared parameters stand in every layer that uses them") {
  const auto ip = [](const std::string& name, const std::string& bottom) {
    return test::layer(
        name, "InnerProduct", bottom, name,
        "param { name: \"w\" } inner_product_param { num_output: 4 bias_term: false }");
  };
  const auto n = test::build(test::input("x", {2, 4}) + ip("a", "x") + ip("b", "a"));
  REQUIRE(n.parameters.size() == 1);
  const auto stored = to_caffemodel(n, {std::vector<float>(16, 2.0f)});
  CHECK(stored.layer(1).blobs_size() == 1);
  CHECK(stored.layer(2).blobs(0).data(15) == 2);
}

TEST_CASE("snapshot: a layer that shares permissively has its own shape in the file") {
  const auto ip = [](const std::string& name, const std::string& bottom, int outputs,
                     const std::string& more) {
    return test::layer(name, "InnerProduct", bottom, name,
                       "param { name: \"w\" " + more + "} inner_product_param { num_output: " +
                           std::to_string(outputs) + " bias_term: false }");
  };
  const auto n = test::build(test::input("x", {2, 6}) + ip("a", "x", 4, "") +
                             ip("b", "a", 6, "share_mode: PERMISSIVE "));
  auto stored = to_caffemodel(n, {std::vector<float>(24, 2.0f)});
  CHECK(to_string(shape_of(stored.layer(1).blobs(0))) == "4x6");
  CHECK(to_string(shape_of(stored.layer(2).blobs(0))) == "6x4");
  stored.mutable_layer(2)->mutable_blobs(0)->set_data(0, 5);  // as in Caffe the last one holds
  parameter_arrays values;
  copy_weights(stored, "w", n, values);
  CHECK(values[0][0] == 5);
  *stored.mutable_layer(2)->mutable_blobs(0) = stored.layer(1).blobs(0);
  CHECK(message_of([&] {
          copy_weights(stored, "w", n, values);
        }).find("has 4x6, the net needs 6x4") != std::string::npos);
}

TEST_CASE("snapshot: a file cut anywhere is refused, with the bytes there and the bytes needed") {
  const test::temporary_folder folder;
  const auto n = small_net();
  const auto path = folder.path() / "w.caffemodel";
  write_atomically(path, to_caffemodel(n, values_of(n)));
  const auto whole = text_of(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    folder.write("w.caffemodel", whole.substr(0, size));
    parameter_arrays values;
    CAPTURE(size);
    // A cut between two layers is a whole message of fewer layers; nothing in the format can tell.
    const auto text = message_of([&] { copy_weights(read_caffemodel(path), "w", n, values); });
    if (size == 0)
      CHECK(text ==
            path.string() + ": the file is empty, it should hold weights. Was its disk full?");
    if (text.find("cut short") == std::string::npos) continue;
    CHECK(text.find("it has " + std::to_string(size) + " byte") != std::string::npos);
  }
  folder.write("w.caffemodel", whole.substr(0, whole.size() - 1));
  CHECK(message_of([&] { (void)read_caffemodel(path); }) ==
        path.string() + ": the file is cut short: it has " + std::to_string(whole.size() - 1) +
            " bytes and needs at least " + std::to_string(whole.size()) +
            " bytes. Copy it again, or use an older snapshot.");
}

TEST_CASE("snapshot: what is no snapshot is refused by name") {
  const test::temporary_folder folder;
  const auto read = [&](const fs::path& path) {
    return message_of([&] { (void)read_caffemodel(path); });
  };
  CHECK(read(folder.path() / "none") ==
        (folder.path() / "none").string() + ": there is no such file of weights.");
  CHECK(read(folder.path()) ==
        folder.path().string() + ": this is a folder, not a file of weights.");
  CHECK(read(folder.write("text", "name: \"lenet\" layer { }"))
            .find("are no weights of Caffe's (NetParameter), or they are damaged.") !=
        std::string::npos);
  ::caffe::NetParameter empty;
  empty.set_name("n");
  write_atomically(folder.path() / "empty", empty);
  CHECK(read(folder.path() / "empty").find("holds no layers, so it is no .caffemodel.") !=
        std::string::npos);
}

TEST_CASE("snapshot: solver state comes back, one set of history per slot") {
  const test::temporary_folder folder;
  const auto n = small_net();
  solver_state state{42, 2, "w.caffemodel", {values_of(n), values_of(n)}, {1ull << 40, 7}};
  for (auto& squares : state.history[1])
    for (auto& v : squares) v *= v;
  state.history[1][0][0] = 5;
  const auto path = folder.path() / "s.solverstate";
  write_atomically(path, to_solverstate(n, state));
  const auto back = read_solverstate(path, n, rule_kind::adam);
  CHECK(back.iteration == 42);
  CHECK(back.current_step == 2);
  CHECK(back.learned_net == "w.caffemodel");
  CHECK(back.history == state.history);
  CHECK(back.data.samples == 1ull << 40);
  CHECK(back.data.test_phases == 7);
  CHECK(read_resume_point(path).data.samples == 1ull << 40);
  CHECK(read_resume_point(path).global_batch == 0);
  state.global_batch = 48;
  write_atomically(path, to_solverstate(n, state));
  CHECK(read_resume_point(path).global_batch == 48);
  CHECK(read_solverstate(path, n, rule_kind::adam).global_batch == 48);
  auto of_caffe = to_solverstate(n, state);  // it says nothing of the data
  of_caffe.clear_poseidon();
  write_atomically(path, of_caffe);
  CHECK(read_resume_point(path).data.samples == 0);
  CHECK(message_of([&] { (void)read_solverstate(path, n, rule_kind::sgd); }) ==
        path.string() +
            ": it has 6 history blobs, the net and its solver need 3 (1 for each of 3 parameters). "
            "It belongs to another net or another type of solver.");
  CHECK(message_of([&] { (void)read_solverstate(path, small_net(4), rule_kind::adam); }) ==
        path.string() + ": history of parameter \"a/0\" has 3x4, the net needs 4x4.");
}

TEST_CASE(
    "write_atomically: a write that fails halfway leaves the old file whole and nothing beside "
    "it") {
  const test::temporary_folder folder;
  const auto n = small_net(3000);
  const auto path = folder.path() / "w.caffemodel";
  folder.write("w.caffemodel", "the old one");
  std::string text;
  {
    const file_limit limit(4096);
    text = message_of([&] { write_atomically(path, to_caffemodel(n, values_of(n))); });
  }
  CHECK(text.find(path.string() +
                  ": writing failed: File too large. What was there before is unchanged.") == 0);
  CHECK(text_of(path) == "the old one");
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("write_atomically: a folder that is not there is named with the remedy") {
  const test::temporary_folder folder;
  const auto path = folder.path() / "none" / "w";
  CHECK(message_of([&] { write_atomically(path, ::caffe::NetParameter{}); }) ==
        path.string() +
            ": cannot be written: No such file or directory. Make the folder first. What was there "
            "before is unchanged.");
}
