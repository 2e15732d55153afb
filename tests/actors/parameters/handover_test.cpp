#include "actors/parameters/handover.hpp"

#include "actors/parameters/first_values.hpp"
#include "messages/float_payload.hpp"
#include "messages/wire/codec.hpp"
#include "models/plan/keepers.hpp"
#include "tests/actors/fakes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace poseidon;

namespace {

constexpr worker_id w0{0}, w1{1}, w2{2};

/// One parameter of 10 values in chunks of (offset, owner); each reaches to the next.
partition cut_at(const std::vector<std::pair<std::size_t, worker_id>>& chunks) {
  partition cut;
  cut.by_parameter.resize(1);
  cut.by_owner.resize(3);
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

/// Cuts parameters of these sizes at random places; on the server each chunk has a random owner.
partition cut_anyhow(std::mt19937& random, const std::vector<std::size_t>& sizes,
                     std::size_t workers, const net& n) {
  partition cut;
  cut.by_parameter.resize(sizes.size());
  cut.by_owner.resize(workers);
  for (std::uint32_t p = 0; p < sizes.size(); ++p) {
    const bool factors = random() % 2 == 0;
    for (std::size_t at = 0; at < sizes[p];) {
      const auto count = std::min<std::size_t>(1 + random() % 6, sizes[p] - at);
      const auto owner = factors ? every_worker : as_id<worker_id>(random() % workers);
      const auto id = cut.chunks.push_back({parameter_id{p}, at, count, owner});
      cut.by_parameter[parameter_id{p}].push_back(id);
      if (!factors) cut.by_owner[owner].push_back(id);
      at += count;
    }
  }
  set_keepers(cut, n.parameters, random() % 3);
  return cut;
}

/// Two views that follow each other: their members by seat.
struct two_views {
  std::vector<std::uint32_t> before, now;

  explicit two_views(std::mt19937& random) {
    const std::uint32_t members = 1 + random() % 4, newcomers = random() % 3;
    for (std::uint32_t seat = 0; seat < members; ++seat) {
      before.push_back(seat);
      if (random() % 3 != 0) now.push_back(seat);
    }
    for (std::uint32_t seat = 0; seat < newcomers; ++seat) now.push_back(members + seat);
    if (now.empty()) now.push_back(members);
  }
  [[nodiscard]] worker_id place_now(std::uint32_t seat) const {
    const auto at = std::find(now.begin(), now.end(), seat);
    return at == now.end() ? no_worker
                           : as_id<worker_id>(static_cast<std::size_t>(at - now.begin()));
  }
  [[nodiscard]] std::vector<worker_id> newcomers() const {
    std::vector<worker_id> out;
    for (const auto seat : now)
      if (seat >= before.size()) out.push_back(place_now(seat));
    return out;
  }
};

/// What a worker has kept, of chunks that it owns and of those that all have.
std::shared_ptr<const chunk_histories> all_kept(const partition& cut, worker_id self,
                                                std::uint32_t slots, bool computes) {
  auto out = std::make_shared<chunk_histories>();
  for (const auto id : cut.chunks.ids()) {
    const auto& c = cut.chunks[id];
    if (c.owner != self && c.owner != every_worker) continue;
    auto& arrays = (*out)[id];
    for (std::uint32_t s = 0; s < slots; ++s)
      arrays.push_back(c.owner == every_worker && !computes ? std::vector<float>{}
                                                            : state(s, c.offset, c.count));
  }
  return out;
}

/// How often each value of a chunk's solver state has come to a worker, all slots together.
using arrivals = std::map<std::pair<worker_id, chunk_id>, std::vector<std::size_t>>;

net three_parameters() {
  auto n = test::one_parameter_net(17);
  n.layers[0].parameters = {0, 1, 2};
  n.parameters.push_back({0, 1, "fc7/1", {5}, 1, 1, {}});
  n.parameters.push_back({0, 2, "frozen", {9}, 0, 1, {}});
  return n;
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
        for (const auto& p : handover(train, {before, now, worker_id{self}, worker_id{self}, {}},
                                      {kept(before, owner, slots)})) {
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

TEST_CASE(
    "handover: whoever joins and leaves, the owner of a chunk and each of its keepers get every "
    "value of its state once, as many as state_values says") {
  const auto train = three_parameters();
  for (std::uint32_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const two_views views(random);
    const auto before = cut_anyhow(random, {17, 5, 9}, views.before.size(), train);
    const auto now = cut_anyhow(random, {17, 5, 9}, views.now.size(), train);
    const std::uint32_t slots = random() % 3;
    const bool computes = random() % 4 != 0;
    arrivals got;
    for (const auto seat : views.before) {
      const view_step step{before, now, worker_id{seat}, views.place_now(seat), views.newcomers()};
      for (const auto& p :
           handover(train, step, {all_kept(before, step.former_self, slots, computes)})) {
        const auto& to = now.chunks[p.chunk];
        const auto values = test::values_of(p.values);
        REQUIRE(p.first + values.size() <= to.count);
        CHECK(values == state(p.slot, to.offset + p.first, values.size()));
        CHECK(!(p.here && step.self == no_worker));
        auto takers = p.away;
        if (p.here) takers.push_back(step.self);
        for (const auto w : takers) {
          auto& of = got[{w, p.chunk}];
          of.resize(to.count);
          for (std::size_t i = 0; i < values.size(); ++i) ++of[p.first + i];
        }
      }
    }
    for (const auto id : now.chunks.ids())
      for (const auto w : id_range<worker_id>(views.now.size())) {
        const auto& c = now.chunks[id];
        const bool kept_anywhere = computes || !on_every_node(before, c.parameter);
        const bool keeps = has_solver_state(train.parameters[value(c.parameter)]) &&
                           kept_anywhere && has_state(now, id, w);
        auto& of = got[{w, id}];
        of.resize(c.count);
        CHECK(of == std::vector<std::size_t>(c.count, keeps ? slots : 0));
        if (has_state(now, id, w)) {
          std::size_t sum = 0;
          for (const auto n : of) sum += n;
          CHECK(state_values(train, before, now, id, slots, computes) == sum);
        }
      }
  }
}

TEST_CASE(
    "handover: when a member leaves, its state goes to the new owners, and it keeps nothing") {
  // Three members, of which the second leaves: workers 0 and 2 become 0 and 1.
  const auto before = cut_at({{0, w0}, {3, w1}, {7, w2}}), now = cut_at({{0, w0}, {5, w1}});
  const auto train = test::one_parameter_net(10);
  const auto gone = handover(train, {before, now, w1, no_worker, {}}, {kept(before, w1, 1)});
  REQUIRE(gone.size() == 2);
  CHECK(!gone[0].here);
  CHECK(gone[0].away == std::vector{w0});
  CHECK(test::values_of(gone[0].values) == state(0, 3, 2));
  CHECK(gone[1].away == std::vector{w1});
  CHECK(test::values_of(gone[1].values) == state(0, 5, 2));
  const auto stays = handover(train, {before, now, w2, w1, {}}, {kept(before, w2, 1)});
  REQUIRE(stays.size() == 1);
  CHECK(stays[0].here);
  CHECK(stays[0].away.empty());
}

TEST_CASE("handover: a newcomer gets each chunk that was on factors from exactly one donor") {
  // Two members; the third one joins. Chunks 0 and 2 are worker 0's to give, chunk 1 is worker 1's.
  auto before = cut_at({{0, every_worker}});
  before.by_owner.resize(2);
  const auto now = cut_at({{0, every_worker}, {4, every_worker}, {8, every_worker}});
  const auto train = test::one_parameter_net(10);
  for (const auto self : {w0, w1}) {
    CAPTURE(value(self));
    const auto pieces =
        handover(train, {before, now, self, self, {w2}}, {kept(before, every_worker, 1)});
    REQUIRE(pieces.size() == 3);
    for (const auto& p : pieces) {
      CHECK(p.here);
      const bool gives = donor_of(p.chunk, 2) == self;
      CHECK(gives == ((value(p.chunk) % 2 == 1) == (self == w1)));
      CHECK(p.away == (gives ? std::vector{w2} : std::vector<worker_id>{}));
    }
  }
}

TEST_CASE("handover: a device that does not compute has no solver state to give") {
  const auto cut = cut_at({{0, w0}});
  auto empty = std::make_shared<chunk_histories>();
  (*empty)[chunk_id{0}] = {{}, {}};
  CHECK(handover(test::one_parameter_net(10), {cut, cut, w0, w0, {}}, {empty}).empty());
}

TEST_CASE("handover: solver state that was read goes to the chunk's owner, by factors to all") {
  const auto cut = cut_at({{0, w1}, {6, every_worker}});
  auto alone = cut_at({{0, w0}});
  alone.by_owner.resize(1);
  const auto pieces =
      handover(test::one_parameter_net(10), {alone, cut, w0, w0, {w1, w2}}, {kept(alone, w0, 1)});
  REQUIRE(pieces.size() == 2);
  CHECK(!pieces[0].here);
  CHECK(pieces[0].away == std::vector{w1});
  CHECK(test::values_of(pieces[0].values) == state(0, 0, 6));
  CHECK(pieces[1].here);
  CHECK(pieces[1].away == std::vector{w1, w2});
  CHECK(test::values_of(pieces[1].values) == state(0, 6, 4));
}

TEST_CASE("handover: the state of a node that is lost comes from its keeper's copies") {
  // Three members, of which the second is lost: workers 0 and 2 become 0 and 1. Worker 2 has kept what worker 1 owned.
  const auto train = test::one_parameter_net(10);
  auto before = cut_at({{0, w0}, {3, w1}, {7, w2}}), now = cut_at({{0, w0}, {5, w1}});
  now.by_owner.resize(2);
  set_keepers(before, train.parameters, 1);
  set_keepers(now, train.parameters, 1);
  REQUIRE(is_keeper(before, chunk_id{1}, w2));
  const auto copies = kept(before, w1, 1);
  const auto pieces = handover(train, {before, now, w2, w1, {}}, {copies});
  REQUIRE(pieces.size() == 2);
  for (const auto& p : pieces) {  // each node owns one of the two chunks, and keeps the other one
    CHECK(p.here);
    CHECK(p.away == std::vector{w0});
  }
  CHECK(test::values_of(pieces[0].values) == state(0, 3, 2));
  CHECK(test::values_of(pieces[1].values) == state(0, 5, 2));
}

TEST_CASE(
    "handover: a lost owner's state comes from its first keeper that is there, newcomers' from "
    "members that are") {
  const auto train = test::one_parameter_net(10);
  auto cut = cut_at({{0, w0}, {3, w1}, {7, w2}});
  set_keepers(cut, train.parameters, 2);
  CHECK(giver_of(cut, chunk_id{1}, {}) == w1);
  CHECK(giver_of(cut, chunk_id{1}, {w0}) == w1);
  CHECK(giver_of(cut, chunk_id{1}, {w1}) == w2);
  CHECK(giver_of(cut, chunk_id{1}, {w1, w2}) == w0);
  CHECK(giver_of(cut, chunk_id{1}, {w0, w1, w2}) == no_worker);
  set_keepers(cut, train.parameters, 0);
  CHECK(giver_of(cut, chunk_id{1}, {w1}) == no_worker);
  CHECK(donor_of(chunk_id{4}, 3, {}) == w1);
  CHECK(donor_of(chunk_id{4}, 3, {w1}) == w2);
  CHECK(donor_of(chunk_id{5}, 3, {w2}) == w0);
  CHECK(donor_of(chunk_id{5}, 3, {w0, w1, w2}) == no_worker);
}

TEST_CASE("first_values: keepers get solver state, too") {
  auto cut = cut_at({{0, w0}, {3, w1}, {7, every_worker}});
  set_keepers(cut, test::one_parameter_net(10).parameters, 1);
  const auto sent = first_value_bytes(cut, 2, worker_id{0}, true, 3);
  CHECK(sent == first_value_bytes(cut, 2, worker_id{1}, false, 3) +
                    first_value_bytes(cut, 2, worker_id{2}, false, 3));
  // As below, and 3 values of state to worker 1, 4 to worker 2.
  CHECK(sent == sizeof(float) * (20 + 2 * (4 + 6 + 3 + 4)));
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
