// Errors of the text format and the schema, and the line of every layer.
#include "models/spec/net_file.hpp"
#include "tests/folder.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {
std::string refused(const std::string& text) {
  try {
    (void)parse_net(text, "a.prototxt");
    return {};
  } catch (const spec_error& e) {
    return e.what();
  }
}
}  // namespace

TEST_CASE("net_file: each layer has the line on which it begins") {
  const auto file = parse_net("name: \"n\"\nlayer { name: \"a\" }\n\n\nlayer {\n  name: \"b\"\n}",
                              "dir/a.prototxt");
  REQUIRE(file.layer_places.size() == 2);
  CHECK(to_string(file.layer_places[0]) == "dir/a.prototxt:2");
  CHECK(to_string(file.layer_places[1]) == "dir/a.prototxt:5");
}

TEST_CASE("net_file: an unknown field is answered with the nearest of its message") {
  CHECK(refused("layer {\n convolution_param { num_outputs: 4 } }") ==
        "a.prototxt:2: ConvolutionParameter has no field \"num_outputs\". Did you mean "
        "\"num_output\"?");
  CHECK(refused("layer { tpye: \"ReLU\" }") ==
        "a.prototxt:1: LayerParameter has no field \"tpye\". Did you mean \"type\"?");
  CHECK(refused("layer { zzzzzz: 1 }") == "a.prototxt:1: LayerParameter has no field \"zzzzzz\".");
}

TEST_CASE(
    "net_file: an unknown enum word is answered with the nearest, or with all if they are few") {
  CHECK(refused("\nlayer { pooling_param { pool: MAXIMUM } }") ==
        "a.prototxt:2: \"MAXIMUM\" is no value of the field \"pool\". It can be MAX, AVE, "
        "STOCHASTIC.");
  CHECK(refused("layer { data_param { backend: LDMB } }") ==
        "a.prototxt:1: \"LDMB\" is no value of the field \"backend\". Did you mean \"LMDB\"?");
}

TEST_CASE("net_file: the other slips of the text format say where and what to do") {
  CHECK(refused("layer {\n name: \"a\"\n name: \"b\" }") ==
        "a.prototxt:3: the field \"name\" stands here a second time and can have one value only. "
        "Delete one of the two.");
  CHECK(refused("layer { inner_product_param { num_output: \"five\" } }") ==
        "a.prototxt:1: Expected integer, got: \"five\"");
  CHECK(refused("layer {\n name: \"a\"\n") ==
        "a.prototxt:3: the file ends inside layer { of line 1. A closing brace is missing.");
  CHECK(refused("layer {\n}\n}\nname: \"n\"") ==
        "a.prototxt:3: this } closes nothing: there is one too many, here or above.");
  CHECK(refused("layer { type: CONVOLUTION }").find("A layer { } takes its type in quotes") !=
        std::string::npos);
  CHECK(refused("layers { layer { name: \"v0\" } }").find("this is a V0 net") != std::string::npos);
}

TEST_CASE("net_file: a field of a message around its own is a sign of a missing brace") {
  CHECK(refused("layer {\n  name: \"a\"\nlayer {\n  name: \"b\"\n}\n") ==
        "a.prototxt:3: LayerParameter has no field \"layer\". NetParameter has one: is the closing "
        "brace of layer { of line 1 missing?");
  CHECK(refused("layers {\n  name: \"a\"\nlayers {") ==
        "a.prototxt:3: V1LayerParameter has no field \"layers\". NetParameter has one: is the "
        "closing brace of layers { of line 1 missing?");
  // Comments, texts and lists with braces in them, `<` and tabs, up to the place of the mistake.
  CHECK(
      refused("layer [ { name: \"}\" # {\n }, {\n\t convolution_param\t<\tnum_output: 4\n\tbottom: "
              "\"x\" } ]") ==
      "a.prototxt:4: ConvolutionParameter has no field \"bottom\". LayerParameter has one: is the "
      "closing brace of convolution_param < of line 3 missing?");
  CHECK(
      refused("layer {\n  convolution_param { weight_filler {\n  layer {") ==
      "a.prototxt:3: FillerParameter has no field \"layer\". NetParameter has one: is the closing "
      "brace of weight_filler { of line 2 and of convolution_param { of line 2 and of layer { of "
      "line 1 missing?");
  // Closed messages do not count.
  CHECK(refused("layer { name: \"a\" } layer { zzzzzz: 1 }") ==
        "a.prototxt:1: LayerParameter has no field \"zzzzzz\".");
}

TEST_CASE("net_file: a byte order mark is no mistake, and UTF-16 is named") {
  const auto file = parse_net("\xef\xbb\xbfname: \"n\"\nlayer { name: \"a\" }", "a.prototxt");
  CHECK(file.spec.name() == "n");
  CHECK(to_string(file.layer_places[0]) == "a.prototxt:2");
  CHECK(refused("name: \"\xef\xbb\xbf\" name: \"m\"").find("a second time") != std::string::npos);
  const test::temporary_folder folder;
  CHECK(read_net(folder.write("bom", "\xef\xbb\xbfname: \"n\"")).spec.name() == "n");
  CHECK_THROWS_WITH(
      (void)read_net(folder.write("wide", std::string("\xff\xfen\0", 4))),
      doctest::Contains("wide: this is text in UTF-16, and a specification is in ASCII or UTF-8."));
  CHECK_THROWS_WITH(
      (void)read_net(folder.write("lfs", "version https://git-lfs.github.com/spec/v1\nsize 12\n")),
      doctest::Contains("lfs: this is a pointer of Git LFS in place of the file, "
                        "which has 12 bytes"));
}

TEST_CASE("net_file: a file that is not there, and a folder, are refused by name") {
  const test::temporary_folder folder;
  CHECK_THROWS_WITH_AS(
      (void)read_net(folder.path()),
      (folder.path().string() + ": this is a folder, not a specification. Name the file in it.")
          .c_str(),
      spec_error);
  try {
    (void)read_net(folder.path() / "none.prototxt");
    FAIL("read a file that is not there");
  } catch (const spec_error& e) {
    CHECK(std::string(e.what()).find(
              "none.prototxt: there is no such file. Relative paths start at ") !=
          std::string::npos);
  }
}

TEST_CASE("net_file: what is too long, or no file to read, is refused by name") {
  const auto says = [](const std::filesystem::path& path) -> std::string {
    try {
      (void)read_net(path);
    } catch (const spec_error& e) {
      return e.what();
    }
    return "";
  };
  const test::temporary_folder folder;
  const auto long_one = folder.write("long", std::string((16 << 20) + 1, '#'));
  CHECK(says(long_one).find("long: it has more than 16 MiB, the most that is read of a "
                            "specification. Is it one?") != std::string::npos);
  CHECK(says("/dev/zero").find("/dev/zero: it has more than 16 MiB") == 0);
  CHECK(says("/proc/self/mem").find("/proc/self/mem: it cannot be read") == 0);
}

TEST_CASE("net_file: nesting without end is refused, not recursed into") {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "layer { ";
  CHECK_FALSE(refused(deep).empty());
  CHECK_FALSE(refused(std::string("\0\xff\xfe", 3)).empty());
}
