// Features against a net that is computed by hand, and in parts against the whole.
#include "apps/data/npy_file.hpp"
#include "models/files/hdf5_file.hpp"
#include "tests/apps/data_program.hpp"

#include <algorithm>
#include <cstring>

using namespace poseidon;
using namespace poseidon::test;

namespace {

constexpr std::size_t images = 10, values = 6, outputs = 3;

constexpr const char* net_text = R"(
name: "tiny"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { scale: 0.0078125 } data_param { source: "%" batch_size: 4 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 3 } }
layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
layer { name: "twice" type: "Power" bottom: "ip" top: "twice" power_param { scale: 2 } }
layer { name: "t4" type: "Power" bottom: "twice" top: "four" power_param { scale: 2 } }
layer { name: "t8" type: "Power" bottom: "four" top: "eight" power_param { scale: 2 } }
layer { name: "ip2" type: "InnerProduct" bottom: "twice" top: "scores" inner_product_param { num_output: 2 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "label" top: "loss" }
)";

float weight(std::size_t out, std::size_t in) {
  return static_cast<float>(out) - 0.25f * static_cast<float>(in);
}
float bias(std::size_t out) {
  return 0.5f - static_cast<float>(out);
}

void add_blob(::caffe::LayerParameter& layer, const shape& s, const std::vector<float>& data) {
  auto& blob = *layer.add_blobs();
  for (const auto extent : s) blob.mutable_shape()->add_dim(extent);
  blob.mutable_data()->Assign(data.begin(), data.end());
}

/// A database, a net and weights for it.
struct made_net {
  temporary_folder folder;
  std::string words;

  made_net() {
    make_image_lmdb(folder / "db", images, {1, 2, 3});
    std::string text = net_text;
    text.replace(text.find('%'), 1, (folder / "db").string());
    write_file(folder / "net.prototxt", text);
    ::caffe::NetParameter weights;
    auto& ip = *weights.add_layer();
    ip.set_name("ip");
    std::vector<float> w, b;
    for (std::size_t o = 0; o < outputs; ++o) {
      b.push_back(bias(o));
      for (std::size_t i = 0; i < values; ++i) w.push_back(weight(o, i));
    }
    add_blob(ip, {outputs, values}, w);
    add_blob(ip, {outputs}, b);
    write_file(folder / "ip.caffemodel", weights.SerializeAsString());
    words = "extract --model " + at("net.prototxt") + " --weights " + at("ip.caffemodel");
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (folder / name).string(); }
};

/// relu(W x + b) of image n, in double precision.
std::vector<double> by_hand(std::size_t n) {
  const auto pixels = made_image(n, values);
  std::vector<double> result;
  for (std::size_t o = 0; o < outputs; ++o) {
    double sum = static_cast<double>(bias(o));
    for (std::size_t i = 0; i < values; ++i)
      sum += static_cast<double>(weight(o, i)) * pixels[i] / 128;
    result.push_back(std::max(0.0, sum));
  }
  return result;
}

std::vector<float> npy_values(const std::filesystem::path& path) {
  const auto file = app::read_npy_header(path);
  const auto text = read_file(path);
  std::vector<float> all((text.size() - file.header_bytes) / sizeof(float));
  std::memcpy(all.data(), text.data() + file.header_bytes, all.size() * sizeof(float));
  return all;
}

}  // namespace

TEST_CASE("extract: features are those of the net, one row for each record, in order") {
  const made_net net;
  // All in one pass: blobs share memory, so a blob may be overwritten later in the pass.
  check_done(net.words + " --blobs ip,data,twice,eight --out " + net.at("f") + "," + net.at("d") +
                 "," + net.at("t") + "," + net.at("e"),
             "10 rows, ip (3) in ");
  const auto rows = records_of(net.folder / "f");
  REQUIRE(rows.size() == images);
  CHECK(rows[0].first == "0000000000");
  CHECK(rows[9].first == "0000000009");
  const auto twice = records_of(net.folder / "t"), eight = records_of(net.folder / "e");
  for (std::size_t n = 0; n < images; ++n) {
    ::caffe::Datum datum, doubled, last;
    REQUIRE(datum.ParseFromString(rows[n].second));
    CHECK(datum.channels() == 3);
    CHECK(datum.height() == 1);
    CHECK(datum.width() == 1);
    CHECK(datum.label() == static_cast<int>(n % 10));
    CHECK_FALSE(datum.has_data());
    const auto expected = by_hand(n);
    REQUIRE(datum.float_data_size() == outputs);
    REQUIRE(doubled.ParseFromString(twice[n].second));
    REQUIRE(last.ParseFromString(eight[n].second));
    for (int o = 0; o < datum.float_data_size(); ++o) {
      CHECK(datum.float_data(o) ==
            doctest::Approx(expected[static_cast<std::size_t>(o)]).epsilon(1e-6));
      CHECK(doubled.float_data(o) == 2 * datum.float_data(o));
      CHECK(last.float_data(o) == 8 * datum.float_data(o));
    }
  }
  // The data layer's output, in its own shape.
  ::caffe::Datum datum;
  REQUIRE(datum.ParseFromString(records_of(net.folder / "d")[7].second));
  CHECK(datum.channels() == 1);
  CHECK(datum.height() == 2);
  CHECK(datum.width() == 3);
  CHECK(datum.float_data(5) == static_cast<float>(made_image(7, values)[5]) / 128);
}

TEST_CASE("extract: N parts together are the whole, bit for bit, on any number of threads") {
  const made_net net;
  check_done(net.words + " --blobs ip --out " + net.at("whole") + " --threads 1");
  check_done(net.words + " --blobs ip --format npy --out " + net.at("whole.npy"));
  check_done(net.words + " --blobs ip --format csv --out " + net.at("whole.csv"));
  check_done(net.words + " --blobs ip --format hdf5 --out " + net.at("whole.h5"));
  for (const int parts : {1, 2, 3}) {
    const auto of = "/" + std::to_string(parts);
    for (int k = parts; k-- > 0;) {  // in whatever order they are done
      const auto part = " --part " + std::to_string(k) + of + " --threads " + std::to_string(k + 1);
      check_done(net.words + part + " --blobs ip --force --out " + net.at("f"));
      check_done(net.words + part + " --blobs ip --force --format npy --out " + net.at("n"));
      check_done(net.words + part + " --blobs ip --force --format csv --out " + net.at("c"));
      check_done(net.words + part + " --blobs ip --force --format hdf5 --out " + net.at("h"));
    }
    const auto merge = [&](const char* name) {
      check_done("merge " + net.at(name) + " --force --parts " + std::to_string(parts),
                 "10 records of " + std::to_string(parts));
    };
    merge("f");
    merge("n");
    merge("c");
    merge("h");
    CHECK(records_of(net.folder / "f") == records_of(net.folder / "whole"));
    CHECK(read_file(net.folder / "n") == read_file(net.folder / "whole.npy"));
    CHECK(read_file(net.folder / "c") == read_file(net.folder / "whole.csv"));
    std::vector<float> one, other;
    CHECK(hdf5_reader(net.folder / "h").read("features", one) ==
          hdf5_reader(net.folder / "whole.h5").read("features", other));
    CHECK(one == other);
    CHECK(hdf5_reader(net.folder / "h").read("label", one) == shape{images});
    CHECK(one[9] == 9);
  }
  CHECK(leftovers(net.folder.path()) == 0);
}

TEST_CASE("extract: every format holds the same values") {
  const made_net net;
  check_done(net.words + " --blobs ip --format npy --out " + net.at("a.npy"));
  check_done(net.words + " --blobs ip --format hdf5 --out " + net.at("a.h5"));
  check_done(net.words + " --blobs ip --format leveldb --out " + net.at("a"));
  CHECK(app::read_npy_header(net.folder / "a.npy").extents == shape{images, outputs});
  CHECK(app::read_npy_header(net.folder / "a.npy").header_bytes % 64 == 0);
  const auto all = npy_values(net.folder / "a.npy");
  std::vector<float> of_hdf5, of_database;
  CHECK(hdf5_reader(net.folder / "a.h5").read("features", of_hdf5) == shape{images, outputs});
  for (const auto& record : records_of(net.folder / "a")) {
    ::caffe::Datum datum;
    REQUIRE(datum.ParseFromString(record.second));
    of_database.insert(of_database.end(), datum.float_data().begin(), datum.float_data().end());
  }
  CHECK(of_hdf5 == all);
  CHECK(of_database == all);
}

TEST_CASE("extract: with --batches the data begin again at their end, as in Caffe") {
  const made_net net;
  check_done(net.words + " --blobs ip --batches 4 --format npy --out " + net.at("a"), "16 rows");
  const auto all = npy_values(net.folder / "a");
  REQUIRE(all.size() == 16 * outputs);
  CHECK(std::equal(all.begin(), all.begin() + 6 * outputs, all.begin() + 10 * outputs));
}

TEST_CASE("extract: mistakes say what to do, and leave nothing") {
  const made_net net;
  const auto out = " --out " + net.at("f");
  check_refused(net.words + " --blobs ipp" + out,
                "has no blob \"ipp\" in phase TEST. Did you mean \"ip\"?");
  check_refused(net.words + " --blobs loss" + out,
                "blob \"loss\" is scalar: it has no row for each of the 4");
  check_refused(net.words + " --blobs scores" + out,
                "layer \"ip2\" (InnerProduct) has parameters, and " + net.at("ip.caffemodel") +
                    " has no layer of that name");
  check_refused("extract --model " + net.at("net.prototxt") + " --blobs ip" + out,
                "no --weights are given");
  check_done("extract --model " + net.at("net.prototxt") + " --blobs data --out " + net.at("d"));
  check_refused(net.words + " --blobs ip,data" + out, "--blobs names 2 and --out 1");
  check_refused(net.words + " --blobs ip,data --out f,f", "--out names f twice");
  check_refused(net.words + " --blobs ip --part 2/2" + out, "--part 2/2: expected K/N");
  check_refused(net.words + " --blobs ip --part x" + out, "--part x: expected K/N");
  check_refused(net.words + " --blobs ip --part 0/4" + out, "there are 3 batches of 4, too few");
  check_refused(net.words + " --blobs ip --format npz" + out, "--format");
  check_refused(net.words + " --blobs ip --out " + net.at("d"), "d exists already");
  check_refused("extract --model none --blobs ip" + out, "none");
  write_file(net.folder / "deploy",
             "name: \"d\"\ninput: \"data\"\ninput_dim: 1\ninput_dim: 1\ninput_dim: "
             "2\ninput_dim: 3\n");
  check_refused("extract --model " + net.at("deploy") + " --blobs data" + out,
                "(Input) reads no data");
  for (const char* format : {"lmdb", "leveldb", "npy", "csv", "hdf5"}) {
    const auto full = run_data(net.words + " --batches 200 --blobs data --format " + format + out,
                               "ulimit -f 8;");
    CHECK_MESSAGE(full.code == 2, format, full.text);
    CHECK_MESSAGE((is_one_line(full.text) && has(full.text, "/f")), full.text);
    CHECK_FALSE(std::filesystem::exists(net.folder / "f"));
  }
  CHECK(leftovers(net.folder.path()) == 0);
}

TEST_CASE("merge: arrays that do not belong together are refused") {
  const made_net net;
  check_done(net.words + " --blobs ip --part 0/2 --format npy --out " + net.at("m"));
  check_done(net.words + " --blobs data --part 1/2 --format npy --out " + net.at("m"));
  check_refused("merge " + net.at("m") + " --parts 2", "is 6x1x2x3");
  const auto whole = read_file(net.folder / "m_0");
  write_file(net.folder / "m_0", whole.substr(0, whole.size() - 4));
  check_refused("merge " + net.at("m") + " --parts 2", "Was it copied whole?");
  check_done(net.words + " --blobs ip --part 0/1 --format csv --out " + net.at("c"));
  const auto lines = read_file(net.folder / "c_0");
  write_file(net.folder / "c_0", lines.substr(0, lines.size() - 3));
  check_refused("merge " + net.at("c") + " --parts 1", "its last line is cut short");
}
