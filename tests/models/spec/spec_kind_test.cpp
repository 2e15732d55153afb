#include "models/spec/spec_kind.hpp"

#include "models/spec/net_file.hpp"
#include "models/spec/text_format.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace poseidon;

namespace {

spec_kind kind(const char* text) {
  return kind_of_spec(outer_fields(text));
}

}  // namespace

TEST_CASE(
    "spec_kind: a solver with its net inside is a solver, though its lines begin with layers") {
  CHECK(kind("net_param {\n  layer {\n    name: \"a\"\n  }\n}\nbase_lr: 0.1\n") ==
        spec_kind::solver);
  CHECK(kind("net: \"a.prototxt\" max_iter: 10") == spec_kind::solver);
  CHECK(kind("name: \"x\"\nlayer { name: \"net\" }\n") == spec_kind::net);
  CHECK(kind("# net: \"a\"\nlayers { type: DATA }") == spec_kind::net);
  CHECK(kind("input: \"data\"") == spec_kind::net);
  CHECK(kind("batch: 64 layer { name: \"a\" }") == spec_kind::profile);
  CHECK(kind("ip1 sfb\n") == spec_kind::other);
  CHECK(kind("\"net:") == spec_kind::other);
}

namespace {

/// Valid text of a net in the forms that the text format allows: brackets of both kinds, lists, comments and white space
/// wherever they may stand.
class random_text {
 public:
  explicit random_text(unsigned seed) : random_(seed) {}

  std::string operator()() {
    std::string text = one_of({"", "\xef\xbb\xbf"});
    for (int n = 1 + below(4); n-- > 0;) text += gap() + field() + gap() + one_of({"", ";", ","});
    return text + gap();
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string one_of(std::vector<std::string> words) {
    return words[static_cast<std::size_t>(below(static_cast<int>(words.size())))];
  }
  std::string gap() {
    return one_of({" ", "\n", "\t", "\v", "\f", "\r\n", " # input: { } > layer [\n", "#\n"});
  }
  /// The text format wants a colon before values, and allows it before messages.
  std::string field() {
    switch (below(5)) {
      case 0:
        return "name" + gap() + ":" + gap() + one_of({"'layer: {'", "\"\\\"input:\""});
      case 1:
        return "input" + gap() + ":" + gap() + one_of({"\"x\"", "[ 'x'," + gap() + "\"]\" ]"});
      case 2:
        return "input_dim" + gap() + ":" + gap() + one_of({"1", "[1, 2]"});
      case 3:
        return "layer" + gap() + one_of({"", ":"}) + gap() + one_of({layer(), list()});
      default:
        return "input_shape" + gap() + one_of({"{ dim: 1 }", ": < dim: 1 >", "<" + gap() + ">"});
    }
  }
  std::string list() { return "[" + gap() + layer() + "," + gap() + layer() + gap() + "]"; }
  std::string layer() {
    const auto inside = gap() + "name: 'a'" + gap() + "convolution_param <" + gap() +
                        "> loss_weight:" + gap() + "[1]" + gap();
    return one_of({"{" + inside + "}", "<" + inside + ">", "{" + gap() + "}"});
  }

  std::mt19937 random_;
};

std::set<std::string> fields_of(const google::protobuf::Message& message) {
  std::vector<const google::protobuf::FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  std::set<std::string> names;
  for (const auto* f : set) names.insert(f->name());
  return names;
}

}  // namespace

TEST_CASE(
    "spec_kind: outer fields are those that protobuf's parser finds, in every form of a text") {
  int texts = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    const auto text = random_text(seed)();
    ::caffe::NetParameter net;
    field_lines lines;
    try {
      parse_text(text, "a.prototxt", net, lines);
    } catch (const spec_error& e) {
      // A name twice is the only mistake that random_text makes.
      REQUIRE_MESSAGE(std::string(e.what()).find("a second time") != std::string::npos, e.what(),
                      "\n", text);
      continue;
    }
    ++texts;
    REQUIRE_MESSAGE(outer_fields(text) == fields_of(net), text);
  }
  CHECK(texts > 2000);
}
