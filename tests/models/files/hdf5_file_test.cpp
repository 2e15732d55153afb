// What HDF5's own library reads: user blocks, fill values, chunks that were never written, virtual datasets. And what is wrong is named.
#include "models/files/hdf5_file.hpp"

#include "models/files/snapshot.hpp"
#include "models/spec/spec_file.hpp"
#include "tests/folder.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <hdf5.h>
#include <random>

using namespace poseidon;

namespace {

namespace fs = std::filesystem;

/// Before any other call, as in hdf5_library.hpp: other tests' damaged files leave objects open.
const auto no_handler_at_exit = H5dont_atexit();

/// Closed at the end of the scope; h5 objects that are left open would keep the file open.
class held {
 public:
  held(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) { REQUIRE(id >= 0); }
  held(const held&) = delete;
  held& operator=(const held&) = delete;
  ~held() { close_(id_); }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

class made_file {
 public:
  explicit made_file(const fs::path& path, hsize_t user_block = 0)
      : create_(H5Pcreate(H5P_FILE_CREATE), H5Pclose),
        file_(((void)H5Pset_userblock(create_, user_block),
               H5Fcreate(path.c_str(), H5F_ACC_TRUNC, create_, H5P_DEFAULT)),
              H5Fclose) {}
  hid_t id() const { return file_; }

  void write(const char* name, const std::vector<hsize_t>& dims, const std::vector<float>& values) {
    const held space(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                     H5Sclose);
    const held dataset(
        H5Dcreate2(file_, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
        H5Dclose);
    REQUIRE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  }

 private:
  held create_, file_;
};

std::string refusal(const std::function<void()>& act) {
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

std::vector<float> read(const fs::path& path, const std::string& dataset) {
  std::vector<float> values;
  (void)hdf5_reader(path).read(dataset, values);
  return values;
}

std::string refused(const fs::path& path, const std::string& dataset) {
  const auto by_shape = refusal([&] { (void)hdf5_reader(path).shape_of(dataset); });
  CHECK(by_shape == refusal([&] { (void)read(path, dataset); }));
  return by_shape;
}

/// A 2 x n dataset "v" of the values of "d" of each part, one below the other.
void write_virtual(made_file& file, const std::vector<std::pair<std::string, std::string>>& parts,
                   hsize_t n, const char* name = "v") {
  const hsize_t dims[] = {parts.size(), n};
  const held space(H5Screate_simple(2, dims, nullptr), H5Sclose);
  const held of_part(H5Screate_simple(1, &n, nullptr), H5Sclose);
  const held create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  const float fill = -1;
  H5Pset_fill_value(create, H5T_NATIVE_FLOAT, &fill);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const hsize_t start[] = {i, 0}, count[] = {1, n};
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr);
    REQUIRE(H5Pset_virtual(create, space, parts[i].first.c_str(), parts[i].second.c_str(),
                           of_part) >= 0);
  }
  const held dataset(
      H5Dcreate2(file.id(), name, H5T_IEEE_F32LE, space, H5P_DEFAULT, create, H5P_DEFAULT),
      H5Dclose);
}

}  // namespace

TEST_CASE(
    "hdf5: a user block of any size may stand before the file, and text that is no HDF5 stays "
    "none") {
  const test::temporary_folder folder;
  for (const hsize_t block : {0, 512, 1024, 2048, 4096, 65536}) {
    const auto path = folder / "u.h5";
    made_file(path, block).write("d", {2}, {3, 4});
    if (block > 0) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file << "MATLAB 7.3 MAT-file, Platform: GLNXA64";
    }
    CHECK(is_hdf5(path));
    CHECK(read(path, "d") == std::vector<float>{3, 4});
  }
  const std::string signature = "\x89HDF\r\n\x1a\n";
  for (const std::size_t before : {1, 256, 511, 513, 1536, 3072})
    CHECK_FALSE(is_hdf5(folder.write("no", std::string(before, 'x') + signature)));
  CHECK_FALSE(is_hdf5(folder.write("no", "")));
  CHECK_FALSE(is_hdf5(folder.write("no", std::string(515, 'x'))));
  CHECK_FALSE(is_hdf5(folder.path()));
}

TEST_CASE("hdf5: what was never written has the fill value, in every layout") {
  const test::temporary_folder folder;
  const auto path = folder / "f.h5";
  int partly = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    std::mt19937 random(seed);
    const bool chunked = random() % 4 != 0, packed = random() % 2 != 0;
    const hsize_t dims[] = {1 + random() % 9, 1 + random() % 9},
                  chunk[] = {1 + random() % 4, 1 + random() % 4};
    const float fill = seed % 3 == 0 ? 0.0f : static_cast<float>(random() % 100);
    std::vector<float> wanted(dims[0] * dims[1], fill);
    {
      const made_file file(path);
      const held space(H5Screate_simple(2, dims, nullptr), H5Sclose);
      const held create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
      if (fill != 0) H5Pset_fill_value(create, H5T_NATIVE_FLOAT, &fill);
      const hsize_t fitting[] = {std::min(chunk[0], dims[0]), std::min(chunk[1], dims[1])};
      if (chunked) H5Pset_chunk(create, 2, fitting);
      if (chunked && packed) H5Pset_deflate(create, 6);
      const held dataset(
          H5Dcreate2(file.id(), "d", H5T_IEEE_F32LE, space, H5P_DEFAULT, create, H5P_DEFAULT),
          H5Dclose);
      const hsize_t one[] = {1, 1};
      const held value_space(H5Screate_simple(2, one, nullptr), H5Sclose);
      for (auto writes = random() % 6; writes-- > 0;) {
        const hsize_t at[] = {random() % dims[0], random() % dims[1]};
        const float value = static_cast<float>(1000 + random() % 1000);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, at, nullptr, one, nullptr);
        REQUIRE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, value_space, space, H5P_DEFAULT, &value) >= 0);
        wanted[at[0] * dims[1] + at[1]] = value;
      }
      if (H5Dget_storage_size(dataset) < wanted.size() * sizeof(float)) ++partly;
    }
    CAPTURE(seed);
    REQUIRE(read(path, "d") == wanted);
  }
  CHECK(partly > 50);
}

TEST_CASE("hdf5: a shape that needs more than a machine has is refused, not filled") {
  const test::temporary_folder folder;
  const auto path = folder / "f.h5";
  for (const bool chunked : {false, true}) {
    {
      const made_file file(path);
      const hsize_t dims[] = {hsize_t{1} << 30, 1 << 20}, chunk[] = {16, 16};
      const held space(H5Screate_simple(2, dims, nullptr), H5Sclose);
      const held create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
      if (chunked) H5Pset_chunk(create, 2, chunk);
      const held dataset(
          H5Dcreate2(file.id(), "d", H5T_IEEE_F32LE, space, H5P_DEFAULT, create, H5P_DEFAULT),
          H5Dclose);
    }
    CHECK(has(refused(path, "d"),
              "says it is 1073741824x1048576 but only 0 bytes of it are stored."));
  }
}

TEST_CASE("hdf5: a virtual dataset is read with its parts, beside it wherever the program runs") {
  const test::temporary_folder folder;
  made_file(folder / "a.h5").write("d", {3}, {1, 2, 3});
  made_file(folder / "b.h5").write("d", {3}, {4, 5, 6});
  const auto path = folder / "v.h5";
  {
    made_file file(path);
    file.write("own", {3}, {7, 8, 9});
    write_virtual(
        file, {{"a.h5", "d"}, {"b.h5", "d"}, {".", "own"}, {(folder / "a.h5").string(), "d"}}, 3);
  }
  CHECK(hdf5_reader(path).shape_of("v") == shape{4, 3});
  CHECK(read(path, "v") == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3});
  {
    made_file file(folder / "w.h5");  // of a virtual one, row by row
    write_virtual(file, {{"x.h5", "v"}}, 3);
    made_file other(folder / "x.h5");
    write_virtual(other, {{"b.h5", "d"}}, 3, "u");
  }
  SUBCASE("a part that is not there is no fill value") {
    fs::remove(folder / "b.h5");
    CHECK(refused(path, "v") ==
          path.string() +
              ": dataset \"v\" is virtual, and the file of a part of it, \"b.h5\", is "
              "not there: it belongs into " +
              folder.path().string() + ".");
    CHECK(read(path, "own") == std::vector<float>{7, 8, 9});
  }
  SUBCASE("nor is one without its dataset, or one that is no HDF5") {
    made_file(folder / "b.h5").write("e", {3}, {4, 5, 6});
    CHECK(has(refused(path, "v"), "a part of it, dataset \"d\" of " + (folder / "b.h5").string() +
                                      ", cannot be opened"));
    (void)folder.write("b.h5", "text");
    CHECK(has(refused(path, "v"),
              "the file of a part of it, " + (folder / "b.h5").string() + ", cannot be opened: "));
    CHECK(has(refused(folder / "w.h5", "v"), "dataset \"v\" of " + (folder / "x.h5").string()));
  }
  SUBCASE("nor is one that is a part of itself") {
    {
      made_file file(folder / "c.h5");
      write_virtual(file, {{".", "v"}}, 3);
    }
    CHECK(has(refused(folder / "c.h5", "v"), "is virtual and a part of itself."));
  }
}

TEST_CASE("hdf5: an object that cannot be opened is named and hides no other") {
  const test::temporary_folder folder;
  const auto path = folder / "f.h5";
  {
    made_file file(path);
    file.write("a", {2}, {1, 2});
    H5Lcreate_soft("/nowhere", file.id(), "b", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("none.h5", "/x", file.id(), "c", H5P_DEFAULT, H5P_DEFAULT);
    file.write("d", {1}, {3});
    const held type(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
    signed char off = 0;
    H5Tenum_insert(type, "FALSE", &off);
    const held space(H5Screate(H5S_SCALAR), H5Sclose);
    const held dataset(
        H5Dcreate2(file.id(), "e", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Dclose);
  }
  const hdf5_reader file(path);
  const auto links = file.list("");
  CHECK(links.datasets == std::vector<std::string>{"a", "d", "e"});
  REQUIRE(links.unreadable.size() == 2);
  CHECK(links.unreadable[0].first == "b");
  CHECK(links.unreadable[1].first == "c");
  CHECK_FALSE(links.unreadable[0].second.empty());
  CHECK(read(path, "d") == std::vector<float>{3});
  CHECK(has(refused(path, "e"), "holds enumerations; only integers and floats are read."));
}

TEST_CASE("hdf5: of weights nothing may be missing") {
  const test::temporary_folder folder;
  const auto path = folder / "w.caffemodel.h5";
  {
    made_file file(path);
    const held data(H5Gcreate2(file.id(), "data", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    const held layer(H5Gcreate2(data, "fc", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    file.write("data/fc/0", {2}, {1, 2});
    H5Lcreate_soft("/nowhere", layer, "1", H5P_DEFAULT, H5P_DEFAULT);
  }
  CHECK(has(refusal([&] { (void)read_caffemodel(path); }),
            "group \"data/fc\" has \"1\", which cannot be opened: "));
}

TEST_CASE("hdf5: values that are packed with a filter which is not here say so, by its name") {
  constexpr int lzf = 32000;  // the number that h5py's has
  const auto same = [](unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t*,
                       void**) { return bytes; };
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS, lzf, 1, 1, "lzf", nullptr, nullptr, same};
  const test::temporary_folder folder;
  const auto path = folder / "p.h5";
  REQUIRE(H5Zregister(&filter) >= 0);
  {
    const made_file file(path);
    const hsize_t n = 4;
    const held space(H5Screate_simple(1, &n, nullptr), H5Sclose);
    const held create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_chunk(create, 1, &n);
    H5Pset_filter(create, lzf, H5Z_FLAG_OPTIONAL, 0, nullptr);
    const held dataset(
        H5Dcreate2(file.id(), "d", H5T_IEEE_F32LE, space, H5P_DEFAULT, create, H5P_DEFAULT),
        H5Dclose);
    const float values[] = {1, 2, 3, 4};
    REQUIRE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  }
  CHECK(read(path, "d") == std::vector<float>{1, 2, 3, 4});
  REQUIRE(H5Zunregister(lzf) >= 0);
  CHECK(hdf5_reader(path).shape_of("d") == shape{4});
  CHECK(has(
      refusal([&] { (void)read(path, "d"); }),
      "dataset \"d\" is packed with the filter 32000 (lzf), which this HDF5 library does not have. "
      "Write it again with gzip"));
}
