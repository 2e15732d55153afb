#include "models/plan/partition.hpp"

#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace poseidon;

namespace {

net lenet() {
  build_options options;
  options.sources = test::images({1, 28, 28});
  return build_net(read_net("models/zoo/lenet/train_val.prototxt"), options);
}

/// One inner product of `out` x `in` weights and `out` biases under a loss.
net one_layer(int in, int out, const std::string& params = {}) {
  return test::build(
      test::input("x", {2, in}) +
      test::layer("a", "InnerProduct", "x", "a",
                  params + " inner_product_param { num_output: " + std::to_string(out) + " }") +
      test::layer("loss", "Reduction", "a", "loss", "loss_weight: 1"));
}

/// Each value of each parameter lies in exactly one chunk.
void check_cover(const net& n, const partition& p) {
  REQUIRE(p.by_parameter.size() == n.parameters.size());
  for (const auto parameter : p.by_parameter.ids()) {
    std::size_t next = 0;
    for (const auto id : p.by_parameter[parameter]) {
      const auto& c = p.chunks.at(id);
      CHECK(c.parameter == parameter);
      CHECK(c.offset == next);
      CHECK(c.count > 0);
      CHECK(c.count * sizeof(float) <= max_chunk_bytes);
      next += c.count;
    }
    CHECK(static_cast<std::int64_t>(next) == count(n.parameters[value(parameter)].shape));
  }
  std::size_t owned = 0;
  for (const auto owner : p.by_owner.ids()) {
    for (const auto id : p.by_owner[owner]) CHECK(p.chunks.at(id).owner == owner);
    owned += p.by_owner[owner].size();
  }
  CHECK(owned == p.chunks.size());
}

std::vector<std::size_t> loads(const partition& p) {
  std::vector<std::size_t> sums;
  for (const auto& ids : p.by_owner) {
    sums.push_back(0);
    for (const auto id : ids) sums.back() += p.chunks[id].count;
  }
  return sums;
}

}  // namespace

TEST_CASE("partition: every learned value has one owner, for one shard and for many") {
  for (const std::size_t shards : {1, 2, 3, 4, 7, 16}) {
    CAPTURE(shards);
    const auto small = lenet();
    check_cover(small, make_partition(small, shards));
    const auto large = one_layer(1031, 2053);
    check_cover(large, make_partition(large, shards));
  }
}

TEST_CASE("partition: every shard of LeNet gets a share, none more than a third above the mean") {
  const auto n = lenet();
  for (const std::size_t shards : {2, 3, 4, 8}) {
    CAPTURE(shards);
    const auto sums = loads(make_partition(n, shards));
    const auto mean = 431080.0 / static_cast<double>(shards);
    CHECK(static_cast<double>(*std::max_element(sums.begin(), sums.end())) <= 4.0 / 3.0 * mean);
    CHECK(*std::min_element(sums.begin(), sums.end()) > 0);
  }
}

TEST_CASE("partition: every piece begins at a multiple of a block of int8 and int4") {
  for (const std::size_t shards : {1, 2, 3, 7})
    for (const auto& n : {lenet(), one_layer(1031, 2053)})
      for (const double scale : {1.0, 0.037}) {
        const auto p = make_partition(n, shards, {}, scale);
        for (const auto& c : p.chunks) CHECK(c.offset % block_values == 0);
      }
}

TEST_CASE("partition: more shards than values leaves some empty and loses none") {
  const auto n = one_layer(2, 1);
  const auto p = make_partition(n, 5);
  check_cover(n, p);
  CHECK(p.chunks.size() == 2);
}

TEST_CASE("partition: frozen parameters have chunks too, because their first values travel") {
  const auto frozen = one_layer(4, 3, "param { lr_mult: 0 }");
  const auto p = make_partition(frozen, 2);
  for (const auto& chunks : p.by_parameter) CHECK(chunks.size() == 1);
  CHECK_FALSE(is_learned(frozen, 0));
  CHECK(is_learned(frozen, 1));
}

TEST_CASE(
    "partition: no shards is refused; the first layer that uses a parameter decides its urgency") {
  const auto n = lenet();
  CHECK_THROWS_AS((void)make_partition(n, 0), std::invalid_argument);
  CHECK(n.layers[first_uses(n)[0]].name == "conv1");
  CHECK(n.layers[first_uses(n)[7]].name == "ip2");
  auto unused = n;
  unused.parameters.emplace_back();
  CHECK_THROWS_AS((void)first_uses(unused), std::invalid_argument);
}

TEST_CASE("partition: every shard owns as much of each parameter that is worth cutting") {
  // All nodes send a layer at the same moment: they would all send to one owner of the whole layer.
  const auto n = test::build(
      test::input("x", {2, 50}) +
      test::layer("a", "InnerProduct", "x", "a", "inner_product_param { num_output: 2000 }") +
      test::layer("b", "InnerProduct", "a", "b", "inner_product_param { num_output: 5000 }") +
      test::layer("loss", "Reduction", "b", "loss", "loss_weight: 1"));
  for (const std::size_t shards : {2, 3, 4, 7}) {
    INFO(shards);
    const auto p = make_partition(n, shards);
    for (const auto parameter : {parameter_id{0}, parameter_id{2}}) {  // 2000 x 50, and 5000 x 2000
      by_id<worker_id, std::size_t> owned(shards);
      for (const auto id : p.by_parameter[parameter])
        owned[p.chunks[id].owner] += p.chunks[id].count;
      const auto [least, most] = std::minmax_element(owned.begin(), owned.end());
      CHECK(*least > 0);
      CHECK(*most - *least <= std::max(*most / 100, 2 * block_values));
    }
    CHECK(p.by_parameter[parameter_id{1}].size() == 1);  // 2000 biases are not worth it
  }
}
