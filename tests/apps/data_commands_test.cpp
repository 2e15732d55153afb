// poseidon-data's commands as a user types them: what they make, what they say, and the exit code.
#include "data/image_store.hpp"
#include "tests/apps/data_program.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sys/stat.h>
#include <utility>

using namespace poseidon;
using namespace poseidon::test;

namespace {
/// A folder with x-images and x-labels of `n` images, ready to convert.
void make_idx(const temporary_folder& folder, std::size_t n) {
  write_file(folder / "images", idx_images(n, 5, 6));
  write_file(folder / "labels", idx_labels(n));
}
std::string mnist(const temporary_folder& folder) {
  return "convert mnist --images " + (folder / "images").string() + " --labels " +
         (folder / "labels").string() + " --out " + (folder / "out").string();
}
}  // namespace

TEST_CASE("poseidon-data: converts, averages and describes, with exit code 0") {
  temporary_folder folder;
  make_idx(folder, 30);
  auto done = run_data(mnist(folder));
  CHECK(done.code == 0);
  CHECK_MESSAGE((is_one_line(done.text) && has(done.text, "30 images of 1x5x6")), done.text);
  done = run_data("info " + (folder / "out").string());
  CHECK(done.code == 0);
  CHECK_MESSAGE(has(done.text, "records  30\nshape    1x5x6 uint8\n"), done.text);
  CHECK(run_data("mean --source " + (folder / "out").string() + " --out " + (folder / "m").string())
            .code == 0);
  CHECK(std::filesystem::exists(folder / "m"));

  std::filesystem::create_directory(folder / "cifar");
  for (const char* name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                           "data_batch_5", "test_batch"})
    write_file(folder / ("cifar/" + std::string(name) + ".bin"), std::string(3073 * 2, '\3'));
  CHECK(run_data("convert cifar10 --in " + (folder / "cifar").string() + " --out " +
                 folder.path().string())
            .code == 0);
  CHECK(open_images(folder / "cifar10_train_lmdb")->size() == 10);
  CHECK(open_images(folder / "cifar10_test_lmdb")->size() == 2);
}

TEST_CASE("poseidon-data: wrong use and bad files end with one line and exit code 2") {
  temporary_folder folder;
  make_idx(folder, 30);
  REQUIRE(run_data(mnist(folder)).code == 0);
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    const auto r = run_data(arguments);
    CHECK(r.code == 2);
    CHECK_MESSAGE((is_one_line(r.text) && has(r.text, part)), r.text);
  };
  refused(mnist(folder), "out exists already");
  CHECK(run_data(mnist(folder) + " --force").code == 0);
  write_file(folder / "images", idx_images(30, 5, 6).substr(0, 500));
  refused(mnist(folder) + " --force", "truncated IDX file: 500 bytes");
  CHECK(open_images(folder / "out")->size() == 30);  // the old one is still whole
  refused("info " + (folder / "none").string(), "no such file or folder");
  refused("mean --source " + (folder / "out").string() + " --out /nowhere/m",
          "/nowhere/m: cannot be written");
  refused("info " + (folder / "out").string() + " > /dev/full", "standard output");
  for (const auto& [path, kind] : {std::pair<std::string, std::string>{"/dev/zero", "a device"},
                                   {(folder / "fifo").string(), "a FIFO"}}) {
    if (kind == "a FIFO") REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    const auto out = " --out " + (folder / "other").string();
    refused("convert list " + path + out, path + ": no such list of images but " + kind);
    write_file(folder / "list", path + " 0\n");
    refused("convert list " + (folder / "list").string() + out, "is " + kind);
    refused("partition " + path + " --parts 2" + out, kind);
    refused("info " + path, kind);
  }
  refused("", "--help");
  refused("convert mnist --images x", "--labels is required");
  CHECK(run_data("--help").code == 0);
}

TEST_CASE("poseidon-data: lists of pictures become databases, and these each other") {
  temporary_folder folder;
  std::string list;
  for (int i = 0; i < 12; ++i) {
    const auto name = "p" + std::to_string(i) + ".ppm";
    write_file(folder / name, "P6 4 3 255\n" + std::string(36, static_cast<char>(i)));
    list += name + " " + std::to_string(i) + "\n";
  }
  write_file(folder / "list", list);
  const auto at = [&](const char* name) { return (folder / name).string(); };
  const auto from_list = "convert images " + at("list") + " --root " + folder.path().string() + "/";
  auto done = run_data(from_list + " --resize-height 5 --resize-width 6 --out " + at("plain"));
  CHECK_MESSAGE((done.code == 0 && has(done.text, "12 images of 3x5x6")), done.text);
  CHECK(open_images(folder / "plain")->key(11) == "00000011_p11.ppm");
  CHECK(run_data(from_list +
                 " --gray --shuffle --seed 3 --backend leveldb --encode-type png --out " +
                 at("packed"))
            .code == 0);
  const auto packed = open_images(folder / "packed");
  CHECK(packed->describe() == "LevelDB of Datum");
  CHECK(packed->image_shape() == shape{1, 3, 4});
  image_scratch scratch;
  std::vector<int> labels;
  for (std::uint64_t n = 0; n < 12; ++n) {
    const auto one = packed->get(n, scratch);
    CHECK(one.bytes[7] == one.label);
    labels.push_back(one.label);
  }
  CHECK_FALSE(std::is_sorted(labels.begin(), labels.end()));
  std::sort(labels.begin(), labels.end());
  CHECK(labels.back() == 11);
  CHECK(std::unique(labels.begin(), labels.end()) == labels.end());
  CHECK(run_data("convert db " + at("packed") + " --out " + at("lmdb")).code == 0);
  done = run_data("info " + at("lmdb"));
  CHECK_MESSAGE(has(done.text, "LMDB of Datum\nrecords  12\nshape    1x3x4 uint8\n"), done.text);
  CHECK(run_data("mean --source " + at("packed") + " --out " + at("mean")).code == 0);

  write_file(folder / "p5.ppm", "P6 4 3 255\nshort");
  done = run_data(from_list + " --strict --out " + at("broken"));
  CHECK(done.code == 2);
  CHECK_MESSAGE((is_one_line(done.text) && has(done.text, "list:6: \"p5.ppm\" is cut short")),
                done.text);
  CHECK_FALSE(std::filesystem::exists(folder / "broken"));
  done = run_data("convert db " + at("none") + " --out " + at("x"));
  CHECK_MESSAGE((done.code == 2 && has(done.text, "no such file or folder")), done.text);
  done = run_data(from_list + " --resize-height 5 --out " + at("x"));
  CHECK_MESSAGE((done.code == 2 && has(done.text, "Give both, or none.")), done.text);
}
