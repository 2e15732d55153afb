#include "actors/parameters/handover.hpp"

#include "actors/parameters/first_values.hpp"
#include "messages/float_payload.hpp"
#include "tests/actors/fakes.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

constexpr worker_id w0{0}, w1{1}, w2{2};

/// One parameter of 10 values in chunks of (offset, owner); each reaches to the next.
partition cut_at(const std::vector<std::pair<std::size_t, worker_id>>& chunks) {
  partition cut;
  cut.by_parameter.resize(1);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const auto end = i + 1 < chunks.size() ? chunks[i + 1].first : 10;
    const auto [first, owner] = chunks[i];
    const auto id = cut.chunks.push_back({test::only_parameter, first, end - first, owner});
    cut.by_parameter[test::only_parameter].push_back(id);
  }
  return cut;
}

/// Value v of slot s is 100 s + v.
std::vector<float> state(std::uint32_t slot, std::size_t first, std::size_t count) {
  std::vector<float> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<float>(100 * slot + first + i));
  return out;
}

std::shared_ptr<const chunk_histories> kept(const partition& cut, worker_id owner,
                                            std::uint32_t slots) {
  auto out = std::make_shared<chunk_histories>();
  for (const auto id : cut.chunks.ids())
    for (std::uint32_t s = 0; cut.chunks[id].owner == owner && s < slots; ++s)
      (*out)[id].push_back(state(s, cut.chunks[id].offset, cut.chunks[id].count));
  return out;
}

}  // namespace

TEST_CASE(
    "handover: every value of every slot reaches the actor that keeps it, once, whatever the "
    "cuts") {
  const auto train = test::one_parameter_net(10);
  const std::vector<partition> cuts{
      cut_at({{0, w0}}), cut_at({{0, w0}, {3, w1}, {7, w2}}), cut_at({{0, w2}, {4, w0}, {5, w1}}),
      cut_at({{0, every_worker}}), cut_at({{0, every_worker}, {6, every_worker}})};
  constexpr std::uint32_t slots = 2;
  constexpr std::size_t workers = 3;
  for (const auto& before : cuts)
    for (const auto& now : cuts) {
      // [worker][slot][value]: how often it has arrived there.
      std::vector<std::vector<std::vector<int>>> got(
          workers, std::vector<std::vector<int>>(slots, std::vector<int>(10)));
      for (std::uint32_t self = 0; self < workers; ++self) {
        const auto owner =
            before.chunks.front().owner == every_worker ? every_worker : worker_id{self};
        for (const auto& p :
             handover(train, before, now, {kept(before, owner, slots)}, worker_id{self}, workers)) {
          const auto& to = now.chunks[p.chunk];
          const auto values = test::values_of(p.values);
          CHECK(values == state(p.slot, to.offset + p.first, values.size()));
          CHECK(p.first + values.size() <= to.count);
          auto arrive = [&](std::uint32_t worker) {
            for (std::size_t i = 0; i < values.size(); ++i)
              ++got[worker][p.slot][to.offset + p.first + i];
          };
          if (p.here) arrive(self);
          for (const auto w : p.away) arrive(value(w));
        }
      }
      for (std::uint32_t w = 0; w < workers; ++w)
        for (std::uint32_t s = 0; s < slots; ++s)
          for (std::size_t v = 0; v < 10; ++v) {
            const auto& chunk = *std::find_if(now.chunks.begin(), now.chunks.end(), [&](auto& c) {
              return c.offset <= v && v < c.offset + c.count;
            });
            const bool keeps = chunk.owner == every_worker || chunk.owner == worker_id{w};
            REQUIRE(got[w][s][v] == (keeps ? 1 : 0));
          }
    }
}

TEST_CASE("handover: a device that does not compute has no solver state to give") {
  const auto cut = cut_at({{0, w0}});
  auto empty = std::make_shared<chunk_histories>();
  (*empty)[chunk_id{0}] = {{}, {}};
  CHECK(handover(test::one_parameter_net(10), cut, cut, {empty}, worker_id{0}, 2).empty());
}

TEST_CASE("handover: solver state that was read goes to the chunk's owner, by factors to all") {
  const auto cut = cut_at({{0, w1}, {6, every_worker}});
  const auto slot = std::make_shared<parameter_arrays>(parameter_arrays{state(0, 0, 10)});
  const auto owned = first_history(cut, chunk_id{0}, {slot}, worker_id{0}, 3);
  REQUIRE(owned.size() == 1);
  CHECK(!owned[0].here);
  CHECK(owned[0].away == std::vector{worker_id{1}});
  CHECK(test::values_of(owned[0].values) == state(0, 0, 6));
  const auto shared = first_history(cut, chunk_id{1}, {slot}, worker_id{0}, 3);
  REQUIRE(shared.size() == 1);
  CHECK(shared[0].here);
  CHECK(shared[0].away == std::vector{worker_id{1}, worker_id{2}});
  CHECK(test::values_of(shared[0].values) == state(0, 6, 4));
}

TEST_CASE("first_values: what worker 0 sends is what the others receive together") {
  const auto cut = cut_at({{0, w0}, {3, w1}, {7, every_worker}});
  for (const std::size_t slots : {0, 2}) {
    CAPTURE(slots);
    const auto sent = first_value_bytes(cut, slots, worker_id{0}, true, 3);
    CHECK(sent == first_value_bytes(cut, slots, worker_id{1}, false, 3) +
                      first_value_bytes(cut, slots, worker_id{2}, false, 3));
    // 10 values to each of two nodes; of the state 4 to worker 1 and 3 to each.
    CHECK(sent == sizeof(float) * (20 + slots * (4 + 6)));
  }
}
