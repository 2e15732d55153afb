#include "apps/data/facts.hpp"
#include "models/files/hdf5_file.hpp"
#include "models/files/snapshot.hpp"
#include "tests/apps/data_program.hpp"

using namespace poseidon;
using namespace poseidon::test;

namespace {

void fill_blob(::caffe::BlobProto& blob, const shape& s, float first) {
  std::int64_t n = 1;
  for (const auto extent : s) {
    blob.mutable_shape()->add_dim(extent);
    n *= extent;
  }
  for (std::int64_t i = 0; i < n; ++i) blob.add_data(first + static_cast<float>(i));
}

void says(const std::filesystem::path& path, std::initializer_list<const char*> parts,
          const std::string& options = {}) {
  const auto done = run_data("info " + path.string() + options);
  CHECK_MESSAGE(done.code == 0, done.text);
  for (const auto* part : parts) CHECK_MESSAGE(has(done.text, part), part, "\n", done.text);
}

}  // namespace

TEST_CASE("facts: text is aligned, JSON is quoted") {
  app::facts f("a\"b", "thing");
  f.add("n", 3);
  f.add("long name", shape{2, 3});
  f.add("words", std::vector<std::string>{"x", "y\n"});
  f.add_table("rows", {"name", "count"}, {{"one", 1}, {"three", 3}});
  f.add_field("hidden", true);
  CHECK(f.event().line() ==
        R"({"kind":"thing","n":3,"long name":"2x3","words":["x","y\u000a"],"hidden":true,)"
        R"("rows":[{"name":"one","count":1},{"name":"three","count":3}]})");
  CHECK(has(f.text(), "n          3\nlong name  2x3\n"));
  CHECK(has(f.text(), "rows:\n  name   count\n  one    1\n  three  3\n"));
}

TEST_CASE("info: databases, with every record read") {
  temporary_folder folder;
  make_image_lmdb(folder / "db", 25, {1, 5, 6});
  says(folder / "db",
       {"LMDB of Datum", "records  25\n", "shape    1x5x6 uint8\n", "encoded  no\n",
        "keys     00000000 ... 00000024\n", "labels   10 different, 0 ... 9\n", "  4      3\n"});
  says(folder / "db/data.mdb", {"LMDB of Datum"});
  says(folder / "db",
       {"\"records\":25", "\"shape\":\"1x5x6\"", "\"encoded\":false", "\"labels\":{\"0\":3,",
        "{\"label\":0,\"records\":3}"},
       " --json");
  check_done("convert db " + (folder / "db").string() +
             " --encode-type png --backend leveldb --out " + (folder / "packed").string());
  says(folder / "packed", {"LevelDB of Datum", "encoded  yes\n"});
  std::vector<std::string> damaged(3, make_datum({1, 1, 2}, std::vector<std::uint8_t>(2), 0));
  damaged[2] = damaged[2].substr(0, 5);
  make_lmdb(folder / "damaged", damaged);
  check_refused("info " + (folder / "damaged").string(), "record \"00000002\" not a Datum");
  says(folder / "damaged", {"records    3\n", "looked at  the first record only\n"}, " --quick");
}

TEST_CASE("info: files of data") {
  temporary_folder folder;
  write_file(folder / "i", idx_images(4, 2, 3));
  write_file(folder / "l", idx_labels(12));
  says(folder / "i", {"IDX file of images", "shape    4x2x3\n"});
  says(folder / "l", {"IDX file of labels", "records  12\n", "  0      2\n"});
  write_file(folder / "i", idx_images(4, 2, 3).substr(0, 30));
  check_refused("info " + (folder / "i").string(), "truncated IDX file: 30 bytes");
  write_file(folder / "c.bin", std::string(3073, '\1'));
  says(folder / "c.bin", {"CIFAR-10 binary", "records  1\n"});
  write_file(folder / "c.bin", std::string(3074, '\1'));
  says(folder / "c.bin", {"CIFAR-100 binary"});
  write_file(folder / "p.ppm", "P6 4 3 255\n" + std::string(36, 'x'));
  for (const auto& [name, kind] : {std::pair{"colour.bmp", "BMP picture"},
                                   {"lossy.webp", "WebP picture"},
                                   {"colour.tif", "TIFF picture"}})
    says(std::filesystem::path("tests/data/pictures") / name,
         {kind, "height    13\n", "width     17\n", "channels  3\n"});
  says(folder / "p.ppm", {"PPM, PGM or PBM picture", "height    3\n", "width     4\n"});
  hdf5_writer h;
  h.write("data", {2, 3}, std::vector<float>(6));
  h.write("label", {2}, std::vector<float>(2));
  const auto image = h.image();
  write_file(folder / "h", std::string(image.begin(), image.end()));
  says(folder / "h", {"HDF5 file", "data     2x3\n", "label    2\n"});
  write_file(folder / "list", "a.png 3\nb c.png 1\n");
  says(folder / "list",
       {"list of images with labels", "images  2\n", "2 different, 1 ... 3", "first   a.png"});
}

TEST_CASE("info: weights, solver states and means, whatever their names") {
  temporary_folder folder;
  ::caffe::NetParameter weights;
  weights.set_name("n");
  auto& ip = *weights.add_layer();
  ip.set_name("ip");
  ip.set_type("InnerProduct");
  fill_blob(*ip.add_blobs(), {2, 3}, 0);
  fill_blob(*ip.add_blobs(), {2}, 0);
  write_file(folder / "w", weights.SerializeAsString());
  says(folder / "w", {"weights (.caffemodel)", "format      V2\n", "parameters  8\n",
                      "ip     InnerProduct  2x3, 2  8\n"});
  ::caffe::NetParameter old;
  auto& v1 = *old.add_layers();
  v1.set_name("ip");
  v1.set_type(::caffe::V1LayerParameter::INNER_PRODUCT);
  fill_blob(*v1.add_blobs(), {1, 1, 2, 3}, 0);
  write_file(folder / "v1", old.SerializeAsString());
  says(folder / "v1", {"format      V1\n", "InnerProduct"});
  ip.mutable_blobs(0)->set_data(4, std::numeric_limits<float>::quiet_NaN());
  write_file(folder / "nan", weights.SerializeAsString());
  says(folder / "nan", {"NaN or infinite  1\n"});

  ::caffe::SolverState state;
  state.set_iter(40);
  state.set_learned_net("x_iter_40.caffemodel");
  fill_blob(*state.add_history(), {2, 3}, 0);
  write_file(folder / "s", state.SerializeAsString());
  says(folder / "s",
       {"solver state", "iteration       40\n", "x_iter_40.caffemodel", "history blobs   1\n"});
  says(folder / "s", {"\"iteration\":40", "\"shape\":\"2x3\""}, " --json");

  ::caffe::BlobProto mean;
  mean.set_num(1);
  mean.set_channels(2);
  mean.set_height(1);
  mean.set_width(2);
  for (const float v : {1.f, 2.f, 5.f, 8.f}) mean.add_data(v);
  write_file(folder / "m", mean.SerializeAsString());
  says(folder / "m",
       {"one image, as a mean image is", "shape    1x2x1x2\n", "0        1.5\n", "1        6.5\n"});
  mean.add_data(1);
  write_file(folder / "m", mean.SerializeAsString());
  check_refused("info " + (folder / "m").string(), "says it is 1x2x1x2 and has 5 values");

  write_file(folder / "cut.caffemodel", weights.SerializeAsString().substr(0, 30));
  check_refused("info " + (folder / "cut.caffemodel").string(), "cut short: it has 30 bytes");
  write_file(folder / "cut.solverstate", state.SerializeAsString().substr(0, 30));
  check_refused("info " + (folder / "cut.solverstate").string(), "cut short: it has 30 bytes");
}

TEST_CASE("info: nets, solvers, profiles and routes") {
  temporary_folder folder;
  write_file(folder / "net",
             "name: \"n\"\nlayer { name: \"d\" type: \"Input\" top: \"d\" input_param { "
             "shape { dim: 2 dim: 5 } } }\nlayer { name: \"ip\" type: \"InnerProduct\" bottom: "
             "\"d\" top: \"ip\" inner_product_param { num_output: 3 } }\n");
  says(folder / "net",
       {": net\n", "format      V2\n", "parameters  18\n", "InnerProduct  d        ip    2x3"});
  write_file(folder / "solver",
             "# net: a comment\nnet: \"" + (folder / "net").string() +
                 "\"\nbase_lr: 0.5 lr_policy: \"fixed\" max_iter: 7 solver_mode: CPU\n");
  says(folder / "solver",
       {": solver\n", "type          SGD\n", "iterations    7\n", "base_lr       0.5\n"});
  write_file(folder / "routes", "# layer  ps|sfb\nfc6 sfb\n@50 fc6 ps # later\n");
  says(folder / "routes",
       {"routes of layers", "fc6    factor_broadcast  0\n", "fc6    parameter_server  50\n"});
  write_file(folder / "p",
             "net: \"n\" batch: 10 layer { name: \"ip\" forward_ms: 2 backward_ms: 3 }\n");
  says(folder / "p", {"profile of a device", "images/s     2000\n"});
  // Data that are not here: the layers all the same, or with an image of the right size.
  write_file(folder / "data",
             "layer { name: \"d\" type: \"Data\" top: \"d\" data_param { source: \"none\" "
             "batch_size: 3 } }\n");
  says(folder / "data", {"shapes  not known: ", "d      Data"});
  says(folder / "data", {"3x1x4x4"}, " --input 1x4x4");
  write_file(folder / "net", "layer { name: \"d\" type: \"Input\" topp: \"d\" }\n");
  check_refused("info " + (folder / "net").string(), "Did you mean \"top\"?");
}

TEST_CASE("info: text as protobuf has it, with a byte order mark and white space of all kinds") {
  temporary_folder folder;
  const std::string d = "name: 'd' type: 'Input' top: 'd' input_param { shape { dim: [2, 5] } }";
  for (const auto& text :
       {"\xef\xbb\xbflayer { " + d + " }", "layer # the data\n{ " + d + " }",
        "layer\v\f<" + d + ">", "layer [ {" + d + " } ]", "layer: < " + d + " >"}) {
    write_file(folder / "net", text);
    says(folder / "net", {": net\n", "format      V2\n", "2x5"});
  }
  write_file(
      folder / "net",
      "input: 'd' input_dim: [1, 1, 2, 5] layers < name: 'r' type: RELU bottom: 'd' top: 'd' >");
  says(folder / "net", {"format      V1\n", "1x1x2x5"});
}

TEST_CASE("info: keys and names that are no text reach neither terminal nor JSON as raw bytes") {
  temporary_folder folder;
  {
    auto writer = make_database(database_kind::lmdb, folder / "db", {2, 1000}, false);
    for (const char last : {'\1', '\2'})
      writer->put(std::string("\xff\0\x1b[31m", 7) + last,
                  make_datum({1, 2, 2}, std::vector<std::uint8_t>(4), 1));
    writer->finish();
  }
  says(folder / "db", {"keys     0xff001b5b33316d01 ... 0xff001b5b33316d02\n"});
  says(folder / "db", {"\"first_key\":\"0xff001b5b33316d01\"", "\"keys\":[\"0xff00"}, " --json");
  write_file(folder / "net",
             "name: '\xff\\033[31m' layer { name: 'a\\033' type: 'Input' top: 'd\xfe' }");
  const auto done = run_data("info --json " + (folder / "net").string());
  for (const char raw : {'\x1b', '\xff', '\xfe'}) CHECK_FALSE(has(done.text, std::string(1, raw)));
  CHECK_MESSAGE(has(done.text, "\\ufffd\\u001b[31m"), done.text);
}

TEST_CASE("info: a dataset of HDF5 that cannot be read says why, and the others are listed") {
  temporary_folder folder;
  // A string, which is no array of numbers.
  hdf5_writer h;
  h.write("data", {2, 3}, std::vector<float>(6));
  h.write_text("made by", "a test");
  const auto image = h.image();
  write_file(folder / "h", std::string(image.begin(), image.end()));
  says(folder / "h",
       {"data     2x3\n", "made by  holds strings; only integers and floats are read.\n"});
}

TEST_CASE("info: pointers of Git LFS, and lists with comments, are named") {
  temporary_folder folder;
  write_file(folder / "lfs", "version https://git-lfs.github.com/spec/v1\nsize 12\n");
  for (const char* name : {"w.caffemodel", "s.solverstate", "m.binaryproto", "w.h5", "a.npy",
                           "a.jpg", "a.bin", "a.prototxt", "data.mdb"}) {
    std::filesystem::copy(folder / "lfs", folder / name);
    check_refused("info " + (folder / name).string(),
                  "this is a pointer of Git LFS in place of the ");
  }
  check_refused("info " + folder.path().string(), "data.mdb: this is a pointer of Git LFS");
  write_file(folder / "list", "# pictures\na.png 3\nb c.png 1\n");
  check_refused("info " + (folder / "list").string(),
                "a list with comments. A # begins no comment");
  write_file(folder / "list", "a#1.png 3\nb c.png 1\n");
  says(folder / "list", {"images  2\n", "first   a#1.png\n"});
}

TEST_CASE("info: NumPy's arrays of every type, by their header") {
  temporary_folder folder;
  const auto array = [&](const std::string& descr, std::size_t bytes) {
    auto header = "{'descr': " + descr + ", 'fortran_order': False, 'shape': (3,), }\n";
    std::string text("\x93NUMPY\1\0", 8);
    text += static_cast<char>(header.size());
    text += '\0';
    write_file(folder / "a.npy", text + header + std::string(bytes, '\0'));
  };
  const std::pair<std::string, std::size_t> plain[] = {
      {"<f4", 12},  {">f8", 24}, {"|b1", 3},      {"|S5", 15},    {"<U5", 60},
      {"<c16", 48}, {"|V7", 21}, {"<M8[ns]", 24}, {"<m8[D]", 24}, {"|O", 50}};
  for (const auto& [type, bytes] : plain) {
    array("'" + type + "'", bytes);
    says(folder / "a.npy", {"NumPy array\n", "shape   3\n", ("values  " + type + "\n").c_str()});
  }
  for (const std::string type :
       {"[('a', '<f4'), ('b', '<i4', (2,))]", "[('a', [('b', '<f4')]), ('c', '|u1')]"}) {
    array(type, 15);
    says(folder / "a.npy", {("values  records " + type + "\n").c_str(), "shape   3\n"});
  }
  array("'<U5'", 59);
  check_refused("info " + (folder / "a.npy").string(), "(<U5), which are 60 bytes, and it has 59");
}

TEST_CASE("info: what is nothing that is known is refused with what it could have been") {
  temporary_folder folder;
  check_refused("info " + (folder / "none").string(), "none: no such file or folder");
  check_refused("info " + folder.path().string(), "without data.mdb");
  write_file(folder / "empty", "");
  check_refused("info " + (folder / "empty").string(), "is empty. Was its disk full?");
  write_file(folder / "text", "hello, world\n");
  check_refused("info " + (folder / "text").string(), "neither net, solver, profile, routes");
  std::string noise;
  for (unsigned i = 0, x = 1; i < 3000; ++i, x = x * 1103515245 + 12345)
    noise += static_cast<char>(x >> 16);
  write_file(folder / "noise", noise);
  check_refused("info " + (folder / "noise").string(), "of no kind that is known");
  check_refused("info", "source is required");
}
