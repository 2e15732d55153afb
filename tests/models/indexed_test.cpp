#include "models/indexed.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <type_traits>

using namespace poseidon;

namespace {

template <class Vector, class Index>
concept indexable = requires(Vector v, Index i) {
  v[i];
};

using names = by_id<layer_id, std::string>;
static_assert(indexable<names, layer_id>);
static_assert(!indexable<names, chunk_id>);
static_assert(!indexable<names, std::size_t>);
static_assert(!std::is_convertible_v<std::size_t, names>);
static_assert(as_id<chunk_id>(7) == chunk_id{7});

}  // namespace

TEST_CASE("by_id: push_back returns the id under which the item is found") {
  names layers;
  CHECK(layers.empty());
  CHECK(layers.push_back("conv1") == layer_id{0});
  CHECK(layers.push_back("ip1") == layer_id{1});
  CHECK(layers[layer_id{1}] == "ip1");
  layers[layer_id{0}] = "conv2";
  CHECK(layers == names{"conv2", "ip1"});
  CHECK(layers.items() == std::vector<std::string>{"conv2", "ip1"});
}

TEST_CASE("by_id: ids() are those of the items, in order") {
  const by_id<chunk_id, int> chunks{10, 11, 12};
  int next = 10;
  for (const auto id : chunks.ids()) CHECK(chunks[id] == next++);
  CHECK(next == 13);
  CHECK(chunks.ids().size() == 3);
  for (const auto id : by_id<chunk_id, int>().ids()) FAIL(value(id));
}

TEST_CASE("by_id: at() refuses an id that contains() does not know") {
  by_id<parameter_id, int> values(2, 5);
  CHECK(values.contains(parameter_id{1}));
  CHECK(values.at(parameter_id{1}) == 5);
  CHECK_FALSE(values.contains(parameter_id{2}));
  CHECK_THROWS_AS((void)values.at(parameter_id{2}), std::out_of_range);
}

TEST_CASE("by_id: flags can be written, and items need not be movable") {
  by_id<parameter_id, bool> flags(3, false);
  flags[parameter_id{2}] = true;
  CHECK(flags == by_id<parameter_id, bool>{false, false, true});
  by_id<chunk_id, std::atomic<int>> counters(2);
  ++counters[chunk_id{1}];
  CHECK(counters[chunk_id{1}] == 1);
}
