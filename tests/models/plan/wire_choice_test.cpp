#include "models/plan/wire_choice.hpp"

#include "models/net/declared_net.hpp"
#include "tests/folder.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

constexpr auto exact = wire_format::float32, half = wire_format::float16,
               brain = wire_format::bfloat16, int8 = wire_format::int8, int4 = wire_format::int4;

std::string product(const std::string& name, const std::string& bottom,
                    const std::string& params = "") {
  return test::layer(name, "InnerProduct", bottom, name,
                     params + " inner_product_param { num_output: 5 }");
}

const std::string chain =
    test::input("x", {6, 2, 4, 4}) + test::input("label", {6}) +
    test::layer("conv1", "Convolution", "x", "conv1",
                "convolution_param { num_output: 4 kernel_size: 3 }") +
    test::layer("bn1", "BatchNorm", "conv1", "conv1") +
    product("ip1", "conv1", "param { lr_mult: 1 } param { lr_mult: 0 }") + product("ip2", "ip1") +
    test::layer("loss", "SoftmaxWithLoss", "ip2", "loss", "bottom: \"label\"");

parameter_formats formats(const std::string& text) {
  const test::temporary_folder folder;
  return formats_of(test::build(chain), parse_wire(folder.write("wire", text).string()));
}

std::string mistake_in(const std::string& text, const std::string& net = chain) {
  const test::temporary_folder folder;
  try {
    (void)formats_of(test::build(net), parse_wire(folder.write("wire", text).string()));
    return {};
  } catch (const spec_error& e) {
    const std::string said = e.what();
    return said.substr(said.find("wire"));
  }
}

}  // namespace

TEST_CASE("wire_choice: a word reduces what is learned, and nothing that is not") {
  const auto n = test::build(chain);
  CHECK(formats_of(n, parse_wire("float32")).empty());
  // conv1, three statistics, ip1 with a frozen bias, ip2
  CHECK(formats_of(n, parse_wire("bfloat16")) ==
        parameter_formats{brain, brain, exact, exact, exact, brain, exact, brain, brain});
}

TEST_CASE("wire_choice: a file names layers, others keep float32") {
  CHECK(formats("# measured\nip1 float16\n\nconv1 bfloat16 # small\nip2 float32\n") ==
        parameter_formats{brain, brain, exact, exact, exact, half, exact, exact, exact});
  CHECK(formats("ip2 float32\n").empty());
}

TEST_CASE("wire_choice: mistakes are told with their line") {
  CHECK(mistake_in("ip1 float16\nip3 float16\n") ==
        "wire:2: the net \"\" has no layer \"ip3\". Did you mean \"ip1\"?");
  CHECK(mistake_in("bn1 float16\n") ==
        "wire:1: layer \"bn1\" learns nothing, so nothing of it travels. Leave it out.");
  CHECK(
      mistake_in("ip1 fp16\n") ==
      "wire:1: expected a layer and one of float32, float16, bfloat16, int8 and int4, found \"ip1 "
      "fp16\".");
  CHECK(mistake_in("ip1 float16 too\n").find("wire:1: expected") == 0);
  CHECK(mistake_in("ip1\n").find("wire:1: expected") == 0);
  CHECK(mistake_in("ip1 float16\nip1 float32\n") ==
        "wire:2: layer \"ip1\" has a format in line 1 already.");
  CHECK_THROWS_WITH_AS(
      (void)parse_wire("nowhere"),
      "--wire nowhere: it is none of float32, float16, bfloat16, int8 and int4, and no file of "
      "that name can be read.",
      spec_error);
}

namespace {

/// Of conv1 24,000 weights, and 4,095 of ip1 and 4,096 of ip2.
const std::string larger =
    test::input("x", {6, 10, 3, 3}) + test::input("label", {6}) +
    test::layer("conv1", "Convolution", "x", "conv1",
                "convolution_param { num_output: 4095 kernel_size: 3 bias_term: false }") +
    test::layer("pool", "Pooling", "conv1", "pool", "pooling_param { global_pooling: true }") +
    test::layer("ip1", "InnerProduct", "pool", "ip1",
                "inner_product_param { num_output: 1 bias_term: false }") +
    test::layer("ip2", "InnerProduct", "ip1", "ip2", "inner_product_param { num_output: 4096 }") +
    test::layer("loss", "SoftmaxWithLoss", "ip2", "loss", "bottom: \"label\"");

}  // namespace

TEST_CASE("wire_choice: blocks are for parameters of 4096 values and more, others stay float32") {
  const auto n = test::build(larger);  // conv1, ip1, ip2 and its bias
  for (const auto f : {int8, int4})
    CHECK(formats_of(n, parse_wire(std::string(to_string(f)))) ==
          parameter_formats{f, exact, f, f});
  CHECK(wire_notes(n, {int8, exact, int4, int4}) ==
        std::vector<std::string>{"wire: int8 for conv1", "wire: int4 for ip2"});
  CHECK(formats_of(test::build(chain), parse_wire("int8")).empty());
  CHECK(mistake_in("conv1 int8\nip1 int4\n", larger) ==
        "wire:2: layer \"ip1\" has no parameter of 4096 values or more (its largest has 4095), and "
        "int4 is for these. Leave it out, or give it bfloat16.");
  CHECK(mistake_in("conv1 int8\nip2 int4\nip1 bfloat16\n", larger).empty());
}

TEST_CASE("wire_choice: a program's bundles stay float32, in whatever blocks others travel") {
  const std::vector<declared_parameter> list{{"large", {100, 100}},
                                             {"small", {10}},
                                             {"small ones", {20000}, false, true},
                                             {"given", {9000}, true}};
  const auto n = declared_net(list);
  const auto asked = formats_asked(n, int4);
  CHECK(asked == parameter_formats{int4, int4, int4, exact});
  CHECK(formats_in_use(n, asked) == parameter_formats{int4, exact, exact, exact});
  CHECK(formats_in_use(n, formats_asked(n, half)) == parameter_formats{half, half, half, exact});
  CHECK(formats_asked(n, exact).empty());
}

TEST_CASE("wire_choice: a parameter that two layers share travels once, so in one format") {
  const std::string shared = "param { name: \"w\" } param { name: \"b\" }";
  const auto net = test::input("x", {6, 4}) + product("a", "x", shared) +
                   product("c", "x", shared) +
                   test::layer("sum", "Eltwise", "a", "sum", "bottom: \"c\"");
  CHECK(mistake_in("a float16\n", net).find("share the parameter \"w\"") != std::string::npos);
  CHECK(mistake_in("a float16\nc float16\n", net).empty());
}

TEST_CASE("wire_choice: factors have one format") {
  CHECK(on_the_server({half, half}, {route::parameter_server, route::factor_broadcast}) ==
        parameter_formats{half, exact});
  const auto n = test::build(chain);
  CHECK(wire_notes(n, {}).empty());
  CHECK(wire_notes(n, formats("ip1 float16\nip2 bfloat16\nconv1 float16\n")) ==
        std::vector<std::string>{"wire: float16 for conv1, ip1", "wire: bfloat16 for ip2"});
}
