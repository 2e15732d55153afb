#include "data/image_store.hpp"
#include "data/mean_file.hpp"
#include "data/picture.hpp"
#include "tests/apps/data_program.hpp"

#include <algorithm>

using namespace poseidon;
using namespace poseidon::test;

namespace {

/// A picture of 4 rows and 4 columns that is like no other `n`'s.
picture made_picture(int n, std::int64_t channels, std::int64_t height = 4) {
  auto p = empty_picture(channels, height, 4);
  for (std::size_t i = 0; i < p.pixels.size(); ++i)
    p.pixels[i] = static_cast<std::uint8_t>(n * 37 + static_cast<int>(i) * 5);
  return p;
}
void write_png(const std::filesystem::path& path, const picture& p) {
  const auto bytes = encode_png(p);
  write_file(path, std::string(bytes.begin(), bytes.end()));
}
void write_jpeg(const std::filesystem::path& path, const picture& p) {
  const auto bytes = encode_jpeg(p);
  write_file(path, std::string(bytes.begin(), bytes.end()));
}

::caffe::Datum datum_of(const std::string& record) {
  ::caffe::Datum datum;
  REQUIRE(datum.ParseFromString(record));
  return datum;
}

struct pictures {
  temporary_folder folder;
  std::string words;

  /// a.png, sub/b c.png and d.png, labels 5, 6, 7.
  pictures() {
    std::filesystem::create_directory(folder / "sub");
    write_png(folder / "a.png", made_picture(0, 3));
    write_png(folder / "sub/b c.png", made_picture(1, 3));
    write_png(folder / "d.png", made_picture(2, 3));
    write_file(folder / "list.txt", "a.png 5\nsub/b c.png 6\nd.png 7\n");
    words = "convert list " + at("list.txt") + " --root " + folder.path().string();
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (folder / name).string(); }
};

std::string cifar100(std::size_t n) {
  std::string text;
  for (std::size_t i = 0; i < n; ++i) {
    text += static_cast<char>(i % 20);
    text += static_cast<char>(99 - i % 100);
    text += std::string(3072, static_cast<char>(i));
  }
  return text;
}

}  // namespace

TEST_CASE("convert list: keys, fields and pixels are those of Caffe's convert_imageset") {
  const pictures made;
  check_done(made.words + " --out " + made.at("out"), "3 images of 3x4x4");
  const auto rows = records_of(made.folder / "out");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].first == "00000000_a.png");
  CHECK(rows[1].first == "00000001_sub/b c.png");
  const auto datum = datum_of(rows[1].second);
  CHECK(datum.label() == 6);
  CHECK(datum.channels() == 3);
  CHECK(datum.has_encoded());  // and false, as CVMatToDatum leaves it
  CHECK_FALSE(datum.encoded());
  std::vector<std::uint8_t> planes;
  to_planes(made_picture(1, 3), planes);
  CHECK(datum.data() == std::string(planes.begin(), planes.end()));
}

TEST_CASE("convert list: takes Caffe's spelling of its options") {
  const pictures made;
  check_done(made.words +
                 " --resize_height=2 --resize_width=6 --gray=true --shuffle=true --check_size "
                 "--encoded=false --backend=leveldb --out " +
                 made.at("out"),
             "3 images of 1x2x6");
  CHECK(open_database(made.folder / "out")->kind() == database_kind::leveldb);
  check_done(made.words + " --encode_type=jpg --out " + made.at("jpg"));
  CHECK(kind_of_picture(
            open_images(made.folder / "jpg")->image_shape() == shape{3, 4, 4}
                ? std::span(reinterpret_cast<const std::uint8_t*>(
                                datum_of(records_of(made.folder / "jpg")[0].second).data().data()),
                            4)
                : std::span<const std::uint8_t>()) == picture_kind::jpeg);
}

TEST_CASE("convert list: what cannot be read is named by its line, left out, counted, and code 1") {
  const pictures made;
  write_file(made.folder / "sub/b c.png", "no picture at all");
  auto done = run_data(made.words + " --out " + made.at("out"));
  CHECK(done.code == 1);
  CHECK_MESSAGE(has(done.text,
                    "left out: " + made.at("list.txt") +
                        ":2: \"sub/b c.png\" is none of JPEG, PNG, WebP, TIFF, BMP, PPM, PGM, PBM"),
                done.text);
  CHECK_MESSAGE(has(done.text, "2 images of 3x4x4, 1 left out"), done.text);
  CHECK_MESSAGE(has(done.text, "1 of 3 images could not be read and are not in " + made.at("out")),
                done.text);
  const auto rows = records_of(made.folder / "out");
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].first == "00000002_d.png");  // the line's number, as in Caffe

  check_refused(made.words + " --strict --out " + made.at("strict"), "list.txt:2: ");
  CHECK_FALSE(std::filesystem::exists(made.folder / "strict"));
  std::filesystem::remove(made.folder / "a.png");  // the first, whose shape all have
  done = run_data(made.words + " --out " + made.at("two"));
  CHECK_MESSAGE((done.code == 1 && has(done.text, "1 image of 3x4x4, 2 left out")), done.text);
  std::filesystem::remove(made.folder / "d.png");
  check_refused(made.words + " --out " + made.at("none"),
                "none of its 3 images can be read. The first: ");
  CHECK_FALSE(std::filesystem::exists(made.folder / "none"));
  write_file(made.folder / "list.txt", "a.png\n");
  check_refused(made.words + " --out " + made.at("none"),
                "list.txt:1: \"a.png\" is no path and label");
  CHECK(leftovers(made.folder.path()) == 0);
}

TEST_CASE("convert list: --check-size refuses another size by line and both sizes") {
  const pictures made;
  write_png(made.folder / "d.png", made_picture(2, 3, 5));
  check_done(made.words + " --out " + made.at("any"));
  check_refused(made.words + " --check-size --out " + made.at("out"),
                "list.txt:3: \"d.png\" is 3x5x4, the first record is 3x4x4");
}

TEST_CASE("convert list --encoded: a file is kept as it is only where it holds the wanted pixels") {
  const pictures made;
  const auto stored = [&](const std::string& options, std::size_t n) {
    check_done(made.words + options + " --force --out " + made.at("out"));
    const auto datum = datum_of(records_of(made.folder / "out")[n].second);
    CHECK(datum.encoded());
    CHECK(datum.channels() * datum.height() * datum.width() > 0);
    return datum.data();
  };
  write_jpeg(made.folder / "d.png", made_picture(2, 3));  // its content says what it is
  CHECK(stored(" --encoded", 0) == read_file(made.folder / "a.png"));
  CHECK(stored(" --encoded", 2) == read_file(made.folder / "d.png"));
  CHECK(stored(" --encode-type png", 0) == read_file(made.folder / "a.png"));
  CHECK(stored(" --encode-type png", 2) != read_file(made.folder / "d.png"));
  CHECK(stored(" --encoded --resize-height 8 --resize-width 8", 0) !=
        read_file(made.folder / "a.png"));
  CHECK(stored(" --encoded --gray", 0) != read_file(made.folder / "a.png"));
  // A gray file where colour is asked for: the net would see one channel.
  write_png(made.folder / "a.png", made_picture(0, 1));
  CHECK(stored(" --encoded", 0) != read_file(made.folder / "a.png"));
  CHECK(open_images(made.folder / "out")->image_shape() == shape{3, 4, 4});
  // A database's packed pictures stay as they are, and can be unpacked.
  check_done("convert db " + made.at("out") + " --encoded --out " + made.at("same"));
  const auto one = records_of(made.folder / "out"), other = records_of(made.folder / "same");
  for (std::size_t n = 0; n < one.size(); ++n)
    CHECK(datum_of(one[n].second).data() == datum_of(other[n].second).data());
}

TEST_CASE("convert list --shuffle: one order for a seed, another for another, every image once") {
  const pictures made;
  std::string list;
  for (int n = 0; n < 20; ++n) list += "a.png " + std::to_string(n) + "\n";
  write_file(made.folder / "list.txt", list);
  const auto labels = [&](const std::string& options) {
    check_done(made.words + options + " --force --out " + made.at("out"));
    std::vector<int> found;
    for (const auto& row : records_of(made.folder / "out"))
      found.push_back(datum_of(row.second).label());
    return found;
  };
  auto one = labels(" --shuffle --seed 4");
  CHECK(one == labels(" --shuffle --seed 4"));
  CHECK(one != labels(" --shuffle --seed 5"));
  std::sort(one.begin(), one.end());
  CHECK(one == labels(""));
}

TEST_CASE("convert images: a folder per class, labels by name") {
  temporary_folder folder;
  for (const char* name :
       {"photos", "photos/dog", "photos/cat", "photos/cat/old", "photos/.hidden"})
    std::filesystem::create_directory(folder / name);
  write_png(folder / "photos/dog/1.png", made_picture(0, 3));
  write_png(folder / "photos/cat/2.PNG", made_picture(1, 3));
  write_png(folder / "photos/cat/old/1.png", made_picture(2, 3));
  write_file(folder / "photos/cat/notes.txt", "not a picture");
  const auto words =
      "convert images " + (folder / "photos").string() + " --out " + (folder / "db").string();
  check_done(words + " --class-names " + (folder / "names").string(),
             "labels: 0 (cat) ... 1 (dog)");
  CHECK(read_file(folder / "names") == "cat\ndog\n");
  const auto rows = records_of(folder / "db");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].first == "00000000_cat/2.PNG");
  CHECK(rows[1].first == "00000001_cat/old/1.png");
  CHECK(rows[2].first == "00000002_dog/1.png");
  CHECK(datum_of(rows[1].second).label() == 0);
  CHECK(datum_of(rows[2].second).label() == 1);
  CHECK(has(run_data(words + " --force").text, "1 file is no pictures by their names"));

  write_file(folder / "photos/dog/1.png", "damaged");
  const auto done = run_data(words + " --force");
  CHECK_MESSAGE(
      (done.code == 1 && has(done.text, "left out: " + (folder / "photos/dog/1.png").string())),
      done.text);
  std::filesystem::create_directory(folder / "photos/eel");
  check_refused(words + " --force", "photos/eel: a class without pictures");
  check_refused(
      "convert images " + (folder / "photos/dog").string() + " --out " + (folder / "x").string(),
      "photos/dog: no folders in it");
  check_refused(
      "convert images " + (folder / "none").string() + " --out " + (folder / "x").string(),
      "none: no such list of images");
  CHECK(leftovers(folder.path()) == 0);
}

TEST_CASE("convert cifar100: fine or coarse labels") {
  temporary_folder folder;
  write_file(folder / "train.bin", cifar100(30));
  write_file(folder / "test.bin", cifar100(4));
  const auto words =
      "convert cifar100 --in " + folder.path().string() + " --out " + folder.path().string();
  check_done(words, "30 images of 3x32x32");
  auto rows = records_of(folder / "cifar100_train_lmdb");
  CHECK(rows[29].first == "00029");  // five digits, as Caffe's convert_cifar_data
  CHECK(datum_of(rows[29].second).label() == 99 - 29);
  CHECK(datum_of(rows[29].second).data() == std::string(3072, 29));
  CHECK(records_of(folder / "cifar100_test_lmdb").size() == 4);
  check_done(words + " --force --labels coarse");
  CHECK(datum_of(records_of(folder / "cifar100_train_lmdb")[29].second).label() == 9);
  check_refused(words + " --force --labels both", "--labels");
  check_done("mean " + (folder / "train.bin").string() + " " + (folder / "m").string());
  write_file(folder / "test.bin", cifar100(4).substr(1));
  check_refused(words + " --force",
                "test.bin: not a CIFAR-100 binary batch, or truncated: 12295 bytes");
  write_file(folder / "test.bin", std::string(3074, '\x7f'));
  check_refused(words + " --force", "test.bin: image 0 has label 127, CIFAR-100 has 100 of them");
  CHECK(records_of(folder / "cifar100_train_lmdb").size() == 30);
}

TEST_CASE("mean: prints each channel's mean, and takes its words in Caffe's order") {
  temporary_folder folder;
  std::string image(12, '\0');  // 2x2x3: all 10, then all 30
  std::fill(image.begin(), image.begin() + 6, '\12');
  std::fill(image.begin() + 6, image.end(), '\36');
  ::caffe::Datum datum;
  datum.set_channels(2);
  datum.set_height(2);
  datum.set_width(3);
  datum.set_data(image);
  make_lmdb(folder / "db", {datum.SerializeAsString()});
  check_done("mean " + (folder / "db").string() + " " + (folder / "m").string(),
             "mean_value channel [0]: 10\nmean_value channel [1]: 30\n");
  CHECK(read_mean(folder / "m").shape == shape{2, 2, 3});
  const auto full =
      run_data("mean --source " + (folder / "db").string() + " --out " + (folder / "n").string(),
               "ulimit -f 0;");
  CHECK_MESSAGE((full.code == 2 && has(full.text, "n: writing failed: File too large")), full.text);
  CHECK_FALSE(std::filesystem::exists(folder / "n"));
  CHECK(leftovers(folder.path()) == 0);
}
