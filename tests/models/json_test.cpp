#include "models/json.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

using namespace poseidon;

TEST_CASE("json: objects and arrays hold each other and close themselves") {
  json_object inner;
  inner.put("loss", 0.5).put("rows", json_array::of(1, json_array(), json_object()));
  json_object out;
  out.put("name", std::string("a \"b\"\n"))
      .put("inner", inner)
      .put("list", json_array::from(std::vector{2, 3}));
  CHECK(out.text() ==
        R"({"name":"a \"b\"\u000a","inner":{"loss":0.5,"rows":[1,[],{}]},"list":[2,3]})");
  CHECK(json_object().add(json_object()).add(inner).add(json_object().put("x", 1)).text() ==
        R"({"loss":0.5,"rows":[1,[],{}],"x":1})");
}

TEST_CASE("json: a value is written by its type, and what is not known or no number is null") {
  json_array all;
  all.put(true).put(-1).put(std::uint64_t{18446744073709551615u}).put(1.5f).put("text");
  all.put(std::nan("")).put(std::optional<int>()).put(std::optional(7)).put(nullptr);
  CHECK(all.put(json_value{"{}"}).text() ==
        R"([true,-1,18446744073709551615,1.5,"text",null,null,7,null,{}])");
}

TEST_CASE("json: items on lines of their own") {
  json_array lines(json_layout::lines);
  CHECK(lines.text() == "[]");
  CHECK(lines.put(1).put(2).text() == "[\n1,\n2\n]");
}

TEST_CASE("json_stream: a list of any length is written in pieces of bounded size") {
  std::string all;
  std::size_t largest = 0;
  json_stream out([&](std::string_view piece) {
    largest = std::max(largest, piece.size());
    all += piece;
  });
  out.put("first", 1);
  out.list("rows", [](auto put) {
    for (int i = 0; i < 100'000; ++i) put(json_array::of(i));
  });
  out.list("none", [](auto) {});
  out.finish();
  CHECK(all.starts_with("{\"first\":1,\"rows\":[\n[0],\n[1],\n"));
  CHECK(all.ends_with(",\n[99999]\n],\"none\":[\n]}\n"));
  CHECK(largest < 70'000);
}
