// What int8 and int4 change for the actors of parameters: chunks are cut where blocks begin, and have the bytes of these.
#include "actors/parameters/gradient_push.hpp"
#include "tests/actors/fakes.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace poseidon;

TEST_CASE("gradient_push: of a gradient in blocks each chunk leaves with the bytes of its blocks") {
  constexpr std::size_t n = 2 * block_values + 3;
  for (const auto format : {wire_format::int8, wire_format::int4}) {
    struct whole : gradient_source {
      std::vector<float> values = std::vector<float>(n);
      std::span<const float> total(std::uint64_t, std::size_t) const override { return values; }
    };
    const auto gradient = std::make_shared<whole>();
    for (std::size_t i = 0; i < n; ++i) gradient->values[i] = std::sin(static_cast<float>(i * i));
    test::sim sim;
    const auto link = sim.listen<send_frame>();
    const auto shard = sim.listen<gradient_arrived>();
    gradient_push_setup s;
    s.overlap = std::make_shared<overlap_meter>(1);
    s.name = "fc7";
    s.parameters = {test::only_parameter};
    s.gradient = gradient;
    s.encoder =
        std::make_shared<gradient_encoder>(std::vector<gradient_encoder::part>{{format, n}});
    s.encoder->encode(0, gradient->values);
    s.store = test::one_parameter_store(n, block_values, 2, 0, format);
    const auto push = sim.spawn<gradient_push>("gradient_push fc7", std::move(s));
    sim.tell(push, connect_gradient_push{{{}, link.in}, shard.in, {}, {}, {}, {}});
    sim.tell(push, backward_done{replica_id{0}, {clock_id{3}, 0, 0}});
    sim.settle();
    REQUIRE(shard.got->size() == 2);  // blocks 0 and 2; block 1 is the other's
    REQUIRE(link.got->size() == 1);
    const auto is_chunk = [&](const payload& p, std::size_t at, std::size_t count) {
      std::vector<std::byte> wanted(wire_bytes(format, count));
      encode(format, std::span(gradient->values).subspan(at, count), wanted);
      return std::equal(p.bytes.begin(), p.bytes.end(), wanted.begin(), wanted.end());
    };
    CHECK(is_chunk(shard.got->front().values, 0, block_values));
    CHECK(is_chunk(link.got->front().data, block_values, block_values));
    CHECK(is_chunk(shard.got->back().values, 2 * block_values, 3));
  }
}
