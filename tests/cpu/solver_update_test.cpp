#include "tests/cpu/hand_net.hpp"
#include "tests/reference/solver_rules.hpp"

using namespace poseidon;
using namespace poseidon::test;

namespace {

const std::vector<rule_kind> kinds = {rule_kind::sgd,     rule_kind::nesterov, rule_kind::adagrad,
                                      rule_kind::rmsprop, rule_kind::adadelta, rule_kind::adam};

solver_rule rule_of(rule_kind k, regularizer norm) {
  return {k, norm, 0.9f, 0.999f, 0.98f, 1e-6f};
}

std::vector<float> positive(std::vector<float> v) {
  for (float& x : v) x = std::abs(x);
  return v;
}

struct chunked {
  std::vector<float> fresh, first, second;
};

/// One update in pieces of `piece` values. `beside`: where the arrays of history after it go; null: where those before it are.
chunked run(const solver_rule& r, std::size_t size, std::size_t piece, chunked* beside = nullptr) {
  const auto g = noise(size, 1), w = noise(size, 2);
  chunked c{std::vector<float>(size), positive(noise(size, 3)), positive(noise(size, 4))};
  auto& after = beside != nullptr ? *beside : c;
  const rule_step step{4, 0.01f, 0.004f, 1.0f / 3};
  const auto cpu = make_cpu_device()->arithmetic();
  for (std::size_t at = 0; at < size; at += piece) {
    const std::size_t n = std::min(piece, size - at);
    const state_array h[] = {
        {std::span<const float>(c.first).subspan(at, n), std::span(after.first).subspan(at, n)},
        {std::span<const float>(c.second).subspan(at, n), std::span(after.second).subspan(at, n)}};
    cpu->update(r, step, std::span(g).subspan(at, n), std::span(w).subspan(at, n),
                std::span(c.fresh).subspan(at, n), {h, history_count(r.kind)});
  }
  return c;
}

}  // namespace

TEST_CASE(
    "update: solver state beside the former one has the same bits, and the former one stays") {
  for (const rule_kind k : kinds) {
    CAPTURE(static_cast<int>(k));
    const auto r = rule_of(k, regularizer::l2);
    const std::size_t size = 203;
    const auto in_place = run(r, size, size);
    chunked after{{}, std::vector<float>(size, -7), std::vector<float>(size, -7)};
    const auto before = run(r, size, 50, &after);
    CHECK(before.fresh == in_place.fresh);
    CHECK(before.first == positive(noise(size, 3)));
    CHECK(before.second == positive(noise(size, 4)));
    CHECK(after.first == in_place.first);
    if (history_count(k) == 2) CHECK(after.second == in_place.second);
  }
}

/// Also where no array begins or ends where a vector of the processor does.
TEST_CASE("update: past the caches, and with a checksum, it writes the same bits") {
  const std::size_t size = 1500;
  for (const rule_kind k : kinds)
    for (const std::size_t from : {0, 1, 3}) {
      CAPTURE(static_cast<int>(k));
      CAPTURE(from);
      const auto r = rule_of(k, regularizer::l2);
      const auto expected = run(r, size, size);
      const auto g = noise(size, 1), w = noise(size, 2);
      const auto first = positive(noise(size, 3)), second = positive(noise(size, 4));
      chunked to{std::vector<float>(size), std::vector<float>(size), std::vector<float>(size)};
      const auto rest = [&](auto& v) { return std::span(v).subspan(from); };
      const state_array h[] = {{rest(first), rest(to.first), true},
                               {rest(second), rest(to.second), true}};
      value_checksum made, wanted;
      make_cpu_device()->arithmetic()->update(r, {4, 0.01f, 0.004f, 1.0f / 3}, rest(g), rest(w),
                                              rest(to.fresh), {h, history_count(r.kind)}, &made);
      const auto same = [&](auto a, auto b) { return std::equal(a.begin(), a.end(), b.begin()); };
      CHECK(same(rest(to.fresh), rest(expected.fresh)));
      CHECK(same(rest(to.first), rest(expected.first)));
      if (history_count(k) == 2) CHECK(same(rest(to.second), rest(expected.second)));
      wanted.add(rest(expected.fresh));
      CHECK(made.value() == wanted.value());
    }
}

TEST_CASE("update: every rule equals Caffe's formula in double precision") {
  for (const rule_kind k : kinds) {
    for (const regularizer norm : {regularizer::l2, regularizer::l1}) {
      CAPTURE(static_cast<int>(k));
      const solver_rule r = rule_of(k, norm);
      const std::size_t size = 203;
      const auto g = noise(size, 1), w = noise(size, 2);
      const auto h1 = positive(noise(size, 3)), h2 = positive(noise(size, 4));
      const chunked c = run(r, size, size);
      std::vector<double> fresh, first, second;
      const rule_step step{4, 0.01f, 0.004f, 1.0f / 3};
      for (std::size_t i = 0; i < size; ++i) {
        const auto s = reference::update(r, step, g[i], w[i], h1[i], h2[i]);
        fresh.push_back(s.w), first.push_back(s.h1), second.push_back(s.h2);
      }
      CHECK(deviation(c.fresh, fresh) < 1e-6);
      CHECK(deviation(c.first, first) < 1e-6);
      CHECK(deviation(c.second, second) < 1e-6);
    }
  }
}

TEST_CASE("update: the bits do not depend on where a parameter is cut into chunks") {
  for (const rule_kind k : kinds) {
    for (const regularizer norm : {regularizer::l2, regularizer::l1}) {
      const solver_rule r = rule_of(k, norm);
      const chunked whole = run(r, 1000, 1000);
      for (const std::size_t piece : {1u, 3u, 7u, 8u, 64u, 333u, 999u}) {
        CAPTURE(static_cast<int>(k));
        CAPTURE(piece);
        const chunked cut = run(r, 1000, piece);
        CHECK(cut.fresh == whole.fresh);
        CHECK(cut.first == whole.first);
        CHECK(cut.second == whole.second);
      }
    }
  }
}

TEST_CASE("update: in place gives the same bits as out of place") {
  const solver_rule r = rule_of(rule_kind::sgd, regularizer::l2);
  auto w = noise(77, 1);
  const auto g = noise(77, 2);
  std::vector<float> fresh(77), h1(77), h2(77);
  const state_array s1{std::span(h1)}, s2{std::span(h2)};
  const auto cpu = make_cpu_device()->arithmetic();
  cpu->update(r, {0, 0.1f, 0.1f, 1}, g, w, fresh, {&s1, 1});
  cpu->update(r, {0, 0.1f, 0.1f, 1}, g, w, w, {&s2, 1});
  CHECK(w == fresh);
}

TEST_CASE("update: wrong sizes are refused with both and nothing is written") {
  const auto cpu = make_cpu_device()->arithmetic();
  const std::vector<float> g(4), w(3);
  std::vector<float> fresh(4, 5.0f), h(4);
  const state_array hs{std::span(h)};
  CHECK_THROWS_WITH(cpu->update({}, {}, g, w, fresh, {&hs, 1}), doctest::Contains("values has 3"));
  CHECK_THROWS_WITH(cpu->update({}, {}, g, g, fresh, {}), doctest::Contains("1 history arrays"));
  CHECK(fresh[0] == 5.0f);
  CHECK_THROWS_WITH(cpu->add(fresh, w), doctest::Contains("3 values into 4"));
}

TEST_CASE("update_average: a part of the values and the change, and both sizes in the error") {
  const std::vector<float> values{1, -2, 4}, change{0.5f, 0, 1};
  std::vector<float> fresh(3);
  const auto cpu = make_cpu_device()->arithmetic();
  cpu->update_average(0.5f, change, values, fresh);
  CHECK(fresh == std::vector<float>{1, -1, 3});
  CHECK_THROWS_WITH_AS(cpu->update_average(0.5f, change, std::span(values).first(2), fresh),
                       doctest::Contains("a statistic of 3 values was given 2 values"),
                       std::invalid_argument);
}
