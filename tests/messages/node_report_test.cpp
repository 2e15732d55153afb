#include "messages/node_report.hpp"

#include "messages/wire/codec.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace poseidon;

namespace {

node_report a_report() {
  node_report r;
  r.sent_ns = 1ll << 50;
  r.asked_ns = 7;
  r.heard_ns = -3;
  r.replicas = 2;
  r.first_name = 5;
  r.first_actor = 2;
  r.first_edge = 1;
  r.first_lane = 3;
  r.names = {"layer conv1 [0]", "", "bottom_ready"};
  r.actors = {{5, 6}, {7, 6}};
  r.edges = {{2, 3, 7}};
  r.lanes = {5};
  r.ended = {1, 3};
  r.renamed = {{2, 5}};
  r.handled_by = {{3, 1ull << 40}};
  r.counts = {{1, 12, 1ull << 45}};
  r.spans = {{3, 5, 6, -1, 100, 250, 9, 0}, {3, 5, 6, 12, -5, 1, 10, 4096}};
  r.spans_left_out = 17;
  r.links = {{1, 2, 3, 4, 5}};
  return r;
}

}  // namespace

TEST_CASE("node_report: comes back as it was sent") {
  const auto sent = a_report();
  const auto bytes = encode_report(sent);
  const auto got = decode_report(*bytes);
  CHECK(*encode_report(got) == *bytes);  // no field lost
  CHECK(got.sent_ns == sent.sent_ns);
  CHECK(got.heard_ns == -3);
  CHECK(got.names == sent.names);
  CHECK(got.edges[0].message == 7);
  CHECK(got.ended == sent.ended);
  CHECK(got.renamed[0].actor == 2);
  CHECK(got.renamed[0].name == 5);
  CHECK(got.counts[0].bytes == 1ull << 45);
  CHECK(got.spans[1].begin_ns == -5);
  CHECK(got.spans[1].chunk == 12);
  CHECK(got.links[0].frames_in == 5);
  CHECK(got.spans_left_out == 17);
}

TEST_CASE("node_report: damaged bytes end as a bad_frame or as some report, never otherwise") {
  const auto whole = *encode_report(a_report());
  CHECK_THROWS_AS(decode_report(std::span(whole).first(3)), bad_frame);
  CHECK_THROWS_AS(decode_report({}), bad_frame);
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    auto bytes = whole;
    for (int n = 0; n < 1 + i % 4; ++n) bytes[random() % bytes.size()] = std::byte(random());
    if (i % 5 == 0) bytes.resize(random() % bytes.size());
    try {
      (void)decode_report(bytes);
    } catch (const bad_frame& e) {
      CHECK(e.kind == "report");
    }
  }
}

TEST_CASE("node_report: more than may be sent is neither sent nor read") {
  node_report r;
  r.spans.resize(max_report_spans + 1);
  CHECK_THROWS_WITH_AS(decode_report(*encode_report(r)),
                       "report: number of spans is 4097, expected at most 4096", bad_frame);
  const std::vector<std::byte> large(max_report_bytes + 1);
  CHECK_THROWS_AS(decode_report(large), bad_frame);
  node_report huge;
  std::mt19937_64 random(1);
  for (int i = 0; i < 400'000; ++i) huge.counts.push_back({0, random(), random()});
  CHECK_THROWS_AS(encode_report(huge), std::length_error);
}
