#include "models/plan/keepers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <vector>

using namespace poseidon;

namespace {

net_parameter parameter(float lr_mult, std::optional<float> average_momentum = std::nullopt) {
  net_parameter p;
  p.shape = {4};
  p.lr_mult = lr_mult;
  p.average_momentum = average_momentum;
  return p;
}

/// Learned, frozen, a running statistic, learned on the factor route, learned in a reduced format; a chunk of each for every worker.
struct five_kinds {
  std::vector<net_parameter> parameters{parameter(1), parameter(0), parameter(0, 0.9f),
                                        parameter(1), parameter(1)};
  partition cut;

  five_kinds(std::size_t workers, std::uint32_t survive) {
    cut.by_owner.resize(workers);
    for (const auto w : id_range<worker_id>(workers))
      for (std::uint32_t p = 0; p < 5; ++p)
        cut.chunks.push_back({parameter_id{p}, 0, 4, p == 3 ? every_worker : w,
                              p == 4 ? wire_format::float16 : wire_format::float32});
    set_keepers(cut, parameters, survive);
  }
  [[nodiscard]] static chunk_id learned(std::size_t owner) { return as_id<chunk_id>(5 * owner); }
};

std::vector<std::uint32_t> numbers(const std::vector<worker_id>& workers) {
  std::vector<std::uint32_t> out;
  for (const auto w : workers) out.push_back(value(w));
  return out;
}

}  // namespace

TEST_CASE("keepers: those of a worker's chunks are the next ones of the ring") {
  const five_kinds four(4, 2);
  CHECK(numbers(keepers_of(four.cut, four.learned(0))) == std::vector<std::uint32_t>{1, 2});
  CHECK(numbers(keepers_of(four.cut, four.learned(3))) == std::vector<std::uint32_t>{0, 1});
  const five_kinds one_each(4, 1);
  CHECK(numbers(keepers_of(one_each.cut, one_each.learned(3))) == std::vector<std::uint32_t>{0});
}

TEST_CASE("keepers: there are no more than other workers, and none of one worker") {
  const five_kinds two(2, 2);
  CHECK(numbers(keepers_of(two.cut, two.learned(1))) == std::vector<std::uint32_t>{0});
  CHECK(keepers_of(five_kinds(1, 2).cut, chunk_id{0}).empty());
}

TEST_CASE(
    "keepers: what has no state of its owner's alone has none, in whatever format it travels") {
  const five_kinds t(3, 2);
  for (const unsigned kind : {1u, 2u, 3u}) {
    CAPTURE(kind);
    CHECK(keepers_of(t.cut, chunk_id{kind}).empty());
  }
  CHECK(keepers_of(t.cut, chunk_id{4}).size() == 2);
  const five_kinds off(3, 0);
  for (const auto id : off.cut.chunks.ids()) CHECK(keepers_of(off.cut, id).empty());
}

TEST_CASE("keepers: the list, the question of one worker and that of its state agree") {
  for (const std::size_t workers : {1u, 2u, 3u, 5u})
    for (const std::uint32_t survive : {0u, 1u, 2u}) {
      const five_kinds t(workers, survive);
      for (const auto id : t.cut.chunks.ids()) {
        const auto list = keepers_of(t.cut, id);
        const auto owner = t.cut.chunks[id].owner;
        for (const auto w : id_range<worker_id>(workers)) {
          const bool listed = std::find(list.begin(), list.end(), w) != list.end();
          CHECK(is_keeper(t.cut, id, w) == listed);
          CHECK(has_state(t.cut, id, w) == (listed || owner == w || owner == every_worker));
          CHECK_FALSE((listed && owner == w));
        }
        CHECK_FALSE(is_keeper(t.cut, id, worker_id{0xffffffff}));
      }
    }
}
