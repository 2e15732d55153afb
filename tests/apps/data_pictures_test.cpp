// poseidon-data on pictures that are stored otherwise than they are meant, or lack their end.
#include "data/picture.hpp"
#include "tests/apps/data_program.hpp"

#include <tuple>

using namespace poseidon;
using namespace poseidon::test;

namespace {

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

::caffe::Datum datum_of(const std::string& record) {
  ::caffe::Datum datum;
  REQUIRE(datum.ParseFromString(record));
  return datum;
}

}  // namespace

TEST_CASE("convert list: --encoded stores a PNG that a reader would take otherwise as its pixels") {
  const temporary_folder folder;
  const auto list = (folder / "list.txt").string();
  const auto words = "convert list " + list + " --root " + folder.path().string();
  const std::filesystem::path samples = "tests/data/pictures";
  for (const auto& [name, height, width] :
       {std::tuple{"transparent.png", 13, 17}, {"held6.png", 17, 13}, {"colour.png", 13, 17}}) {
    CAPTURE(name);
    std::filesystem::copy_file(samples / name, folder / name);
    write_file(folder / "list.txt", name + std::string(" 1\n"));
    check_done(words + " --encoded --force --out " + (folder / "db").string());
    const auto data = datum_of(records_of(folder / "db")[0].second);
    REQUIRE(data.encoded());
    const auto read = decode_picture(bytes_of(data.data()), picture_colour::as_stored);
    CHECK(read.channels == 3);  // as Caffe's decoder takes it, which asks for no colour
    CHECK(read.height == height);
    CHECK(read.width == width);
    const auto text = read_file(samples / name);
    CHECK(read.pixels == decode_picture(std::vector<std::uint8_t>(text.begin(), text.end()),
                                        picture_colour::colour)
                             .pixels);
    CHECK((data.data() == text) == (name == std::string("colour.png")));
  }
}

TEST_CASE("convert list and info: a JPEG without its end marker is read with a warning") {
  const temporary_folder folder;
  const auto list = (folder / "list.txt").string();
  const auto words = "convert list " + list + " --root " + folder.path().string();
  const auto samples = read_file("tests/data/pictures/colour.ppm");
  const auto jpeg = encode_jpeg(decode_picture(bytes_of(samples), picture_colour::colour));
  const std::string whole(jpeg.begin(), jpeg.end());
  write_file(folder / "whole.jpg", whole);
  write_file(folder / "cut.jpg", whole.substr(0, whole.size() - 2));
  write_file(folder / "list.txt", "whole.jpg 1\ncut.jpg 2\n");
  for (const auto& [how, out] : {std::pair{"", "out"}, {" --encoded", "encoded"}}) {
    const auto done = run_data(words + how + " --out " + (folder / out).string());
    CHECK(done.code == 0);
    CHECK_MESSAGE(has(done.text, "poseidon-data: " + list +
                                     ":2: \"cut.jpg\" is a JPEG without its end marker (EOI), "),
                  done.text);
    CHECK_FALSE(has(done.text, "whole.jpg"));
  }
  const auto rows = records_of(folder / "out");
  REQUIRE(rows.size() == 2);
  CHECK(datum_of(rows[0].second).data() == datum_of(rows[1].second).data());
  const auto encoded = records_of(folder / "encoded");
  REQUIRE(encoded.size() == 2);
  CHECK(datum_of(encoded[0].second).data() == whole);
  const auto again = datum_of(encoded[1].second).data();
  CHECK(again.substr(again.size() - 2) == "\xff\xd9");
  check_done("info " + (folder / "cut.jpg").string(), "is a JPEG without its end marker (EOI)");
  write_file(folder / "list.txt", "cut.jpg 2\n");
  write_file(folder / "cut.jpg", whole.substr(0, whole.size() - 12));
  check_refused(words + " --strict --out " + (folder / "none").string(),
                "\"cut.jpg\" is a damaged JPEG: it is cut short.");
}

TEST_CASE("extract: of a picture whose file lacks its end, a warning says so") {
  const temporary_folder folder;
  auto jpeg = encode_jpeg(empty_picture(1, 4, 4));
  jpeg.erase(jpeg.end() - 2, jpeg.end());
  const auto cut = (folder / "cut.jpg").string();
  write_file(cut, std::string(jpeg.begin(), jpeg.end()));
  write_file(folder / "net.prototxt",
             "layer { name: \"data\" type: \"Input\" top: \"data\" input_param { shape { dim: 1 "
             "dim: 1 dim: 4 dim: 4 } } }\n"
             "layer { name: \"twice\" type: \"Power\" bottom: \"data\" top: \"twice\" "
             "power_param { scale: 2 } }\n");
  check_done("extract --model " + (folder / "net.prototxt").string() + " --images " + cut +
                 " --blobs twice --format npy --out " + (folder / "twice.npy").string(),
             "poseidon-data: " + cut + " is a JPEG without its end marker (EOI), ");
}
