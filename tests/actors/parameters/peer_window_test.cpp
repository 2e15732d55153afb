#include "actors/parameters/peer_window.hpp"

#include "messages/wire/codec.hpp"
#include "tests/actors/fakes.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace poseidon;

namespace {

/// Worker 1 of three, whose run begins at clock 5; chunks 0, 1, 2 of one parameter belong to workers 0, 1, 2.
struct window_on {
  std::shared_ptr<parameter_store> store = test::one_parameter_store(3, 1, 3);
  peer_window window;

  explicit window_on(unsigned peer, factor_stores factors = {})
      : window({worker_id{1}, worker_id{peer}, clock_id{5}, {true}, store, std::move(factors)}) {
    store->publish(test::only_parameter, 5);
    store->set_applied(chunk_id{1}, 5);
  }
  std::string refused(const frame_header& h) {
    try {
      window.admit(h);
      return "";
    } catch (const bad_frame& e) {
      return e.what();
    }
  }
  std::string gradient(unsigned chunk, std::uint64_t clock) {
    return refused(frames::push_gradient{chunk_id{chunk}, clock_id{clock}});
  }
  std::string fresh(unsigned chunk, std::uint64_t version) {
    return refused(frames::fresh_parameters{chunk_id{chunk}, version_id{version}});
  }
};

}  // namespace

TEST_CASE("peer_window: a gradient has the clock that is next, once, and no later one") {
  window_on t(2);
  CHECK(t.gradient(1, 4) == "push_gradient: clock of chunk 1 is 4, expected 5");
  CHECK(t.gradient(1, 6) == "push_gradient: clock of chunk 1 is 6, expected 5");
  CHECK(t.gradient(1, 5).empty());
  CHECK(t.gradient(1, 5) == "push_gradient: clock of chunk 1 is 5, expected 6");
  CHECK(t.gradient(1, 6) == "push_gradient: clock of chunk 1 is 6, expected at most 5 so far");
  t.store->set_applied(chunk_id{1}, 6);
  CHECK(t.gradient(1, 6).empty());
}

TEST_CASE("peer_window: a peer may push before this node's shard has its first values") {
  window_on t(2);
  t.store->set_applied(chunk_id{1}, 0);
  CHECK(t.gradient(1, 5).empty());
}

TEST_CASE("peer_window: gradients go to the owner of the chunk, and only of what is learned") {
  window_on t(2);
  CHECK(t.gradient(0, 5) == "push_gradient: owner of chunk 0 is worker 0, expected worker 1");
  peer_window frozen({worker_id{1}, worker_id{2}, clock_id{5}, {false}, t.store, {}});
  CHECK_THROWS_WITH(frozen.admit(frames::push_gradient{chunk_id{1}, clock_id{5}}),
                    "push_gradient: lr_mult of chunk 1 is not 0, expected 0, it is frozen");
}

TEST_CASE(
    "peer_window: first values come from worker 0 for every chunk, later ones from the owner") {
  window_on from_first(0);
  for (const unsigned chunk : {0u, 1u, 2u}) CHECK(from_first.fresh(chunk, 5).empty());
  CHECK(from_first.fresh(2, 5) == "fresh_parameters: version of chunk 2 is 5, expected 6");
  CHECK(from_first.fresh(2, 6) ==
        "fresh_parameters: owner of chunk 2 is worker 2, expected worker 0");
  CHECK(from_first.fresh(0, 6).empty());
  CHECK(from_first.fresh(0, 7) ==
        "fresh_parameters: version of chunk 0 is 7, expected at most 6 so far");
  from_first.store->publish(test::only_parameter, 6);
  CHECK(from_first.fresh(0, 7).empty());

  window_on from_other(2);
  CHECK(from_other.fresh(0, 5) ==
        "fresh_parameters: owner of chunk 0 is worker 0, expected worker 2");
  CHECK(from_other.fresh(2, 5) == "fresh_parameters: version of chunk 2 is 5, expected 6");
  CHECK(from_other.fresh(2, 6).empty());
}

TEST_CASE("peer_window: squares come clock by clock") {
  window_on t(2);
  const auto squares = [&](std::uint64_t clock) {
    return t.refused(frames::gradient_squares{clock_id{clock}});
  };
  CHECK(squares(5).empty());
  CHECK(squares(5) == "gradient_squares: clock is 5, expected 6");
  CHECK(squares(6) == "gradient_squares: clock is 6, expected at most 5 so far");
}

TEST_CASE(
    "peer_window: solver state is installed by worker 0, in its owner, before the first update") {
  window_on first(0), other(2);
  CHECK(first.refused(frames::install_history{chunk_id{1}, 0}).empty());
  CHECK(first.refused(frames::install_history{chunk_id{2}, 0}) ==
        "install_history: owner of chunk 2 is worker 2, expected worker 1");
  CHECK(other.refused(frames::install_history{chunk_id{1}, 0}) ==
        "install_history: from is 2, expected 0");
  first.store->set_applied(chunk_id{1}, 6);
  CHECK(first.refused(frames::install_history{chunk_id{1}, 0}) ==
        "install_history: time of chunk 1 is version 6, expected before the first update");
}

TEST_CASE(
    "peer_window: solver state is sent once, by its owner, of the version that a snapshot asks "
    "for") {
  window_on t(2);
  const auto sends = [&](unsigned chunk, std::uint64_t version) {
    return t.refused(frames::history{chunk_id{chunk}, 0, version_id{version}});
  };
  CHECK(sends(2, 6) == "history: time is now, expected while this node gathers a snapshot");
  t.store->set_gathering(6);
  CHECK(sends(1, 6) == "history: owner of chunk 1 is worker 1, expected worker 2");
  CHECK(sends(2, 7) ==
        "history: version of chunk 2 is 7, expected 6, which this node has asked for");
  CHECK(sends(2, 6).empty());
  CHECK(sends(2, 6) == "history: slot of chunk 2 is 0 again, expected each slot once");
  t.store->set_gathering(9);
  CHECK(sends(2, 9).empty());
}

TEST_CASE(
    "peer_window: each clock is reported at most once, and none that the peer cannot have "
    "trained") {
  window_on t(2);
  const auto reports = [&](std::uint64_t clock, std::int32_t test_net) {
    return t.refused(frames::worker_report{clock_id{clock}, test_net, 1, {}, 0, 0, 0});
  };
  CHECK(reports(5, -1).empty());
  CHECK(reports(5, 0).empty());  // of a test before that clock
  CHECK(reports(5, -1) ==
        "worker_report: clock is 5, expected 6 or more: one report of each clock, in their order");
  CHECK(reports(6, -1).empty());
  CHECK(reports(7, -1) == "worker_report: clock is 7, expected at most 6 so far");
}

TEST_CASE(
    "peer_window: after a change of the view solver state comes from who kept it, values from no "
    "one") {
  // Before, chunks of two values belonged to workers 0, 1 in turn: 0 1 | 2.
  const auto before = std::make_shared<partition>(test::one_parameter_store(3, 2, 3)->cut());
  const auto store = test::one_parameter_store(3, 1, 3);
  const auto window = [&](unsigned peer) {
    peer_window_setup s{worker_id{1}, worker_id{peer}, clock_id{5}, {true}, store, {}};
    s.before = before;
    s.former_peer = worker_id{peer};
    return peer_window(std::move(s));
  };
  auto first = window(0), other = window(2);
  CHECK_NOTHROW(first.admit(frames::install_history{chunk_id{1}, 0, 0}));
  CHECK_THROWS_WITH(
      other.admit(frames::install_history{chunk_id{1}, 0, 0}),
      "install_history: former owner of chunk 1 is another worker, expected worker 2");
  CHECK_THROWS_WITH(first.admit(frames::fresh_parameters{chunk_id{0}, version_id{5}}),
                    "fresh_parameters: version of chunk 0 is 5, expected 6");
}

TEST_CASE("peer_window: a newcomer takes first values of a chunk from its donor alone") {
  const auto before = std::make_shared<partition>(test::one_parameter_store(3, 2, 3)->cut());
  const auto store = test::one_parameter_store(3, 1, 3);
  // This node is worker 1. Of the view before there were three members: chunk c is for its worker c to give.
  const auto fresh_from = [&](unsigned peer, worker_id former, unsigned chunk) {
    peer_window_setup s{worker_id{1}, worker_id{peer}, clock_id{5}, {true}, store, {}};
    s.before = before;
    s.former_peer = former;
    s.joins = true;
    peer_window window(std::move(s));
    try {
      window.admit(frames::fresh_parameters{chunk_id{chunk}, version_id{5}});
      window.admit(frames::fresh_parameters{chunk_id{chunk}, version_id{5}});
      return std::string("twice");
    } catch (const bad_frame& e) {
      return std::string(e.what());
    }
  };
  const auto once = [](unsigned chunk) {
    return "fresh_parameters: version of chunk " + std::to_string(chunk) + " is 5, expected 6";
  };
  CHECK(fresh_from(0, worker_id{0}, 0) == once(0));
  CHECK(fresh_from(2, worker_id{1}, 1) == once(1));
  CHECK(fresh_from(2, worker_id{1}, 0) ==
        "fresh_parameters: owner of chunk 0 is worker 0, expected worker 2");
  // It owns the chunk now, and its first values are another member's to give; nor does another newcomer give any.
  for (const auto former : {worker_id{1}, no_worker}) {
    peer_window_setup s{worker_id{1}, worker_id{2}, clock_id{5}, {true}, store, {}};
    s.before = before;
    s.former_peer = former;
    s.joins = true;
    peer_window window(std::move(s));
    CHECK_THROWS_WITH(window.admit(frames::fresh_parameters{chunk_id{2}, version_id{5}}),
                      once(2).c_str());
  }
}

TEST_CASE(
    "peer_window: solver state of a node that has left is taken from it alone, and nothing else") {
  const auto before = std::make_shared<partition>(test::one_parameter_store(3, 2, 3)->cut());
  window_on t(0);
  const auto hears = [&](worker_id former, bool joins = false) {
    peer_window_setup s{worker_id{1}, no_worker, clock_id{5}, {true}, t.store, {}};
    s.before = before;
    s.former_peer = former;
    s.joins = joins;
    t.window = peer_window(std::move(s));
  };
  hears(worker_id{2});
  CHECK(t.refused(frames::install_history{chunk_id{1}, 0, 0}) ==
        "install_history: former owner of chunk 1 is another worker, expected worker 2");
  hears(worker_id{0});
  CHECK(t.refused(frames::install_history{chunk_id{1}, 0, 0}).empty());
  CHECK(!t.gradient(1, 5).empty());
  CHECK(!t.fresh(1, 5).empty());
  CHECK(!t.fresh(1, 6).empty());
  CHECK(!t.refused(frames::gradient_squares{clock_id{5}}).empty());
  CHECK(!t.refused(frames::history{chunk_id{1}, 0, version_id{5}}).empty());
  hears(worker_id{1}, true);
  CHECK(t.fresh(1, 5).empty());  // its last act can be to give a newcomer its values
}

TEST_CASE(
    "peer_window: solver state that all kept comes to newcomers alone, from the chunk's donor") {
  partition on_factors;
  on_factors.chunks = {{test::only_parameter, 0, 3, every_worker}};
  on_factors.by_parameter = {{chunk_id{0}}};
  on_factors.by_owner.resize(2);
  const auto before = std::make_shared<const partition>(on_factors);
  window_on t(0);
  const auto installs = [&](worker_id former, bool joins) {
    peer_window_setup s{worker_id{1}, worker_id{0}, clock_id{5}, {true}, t.store, {}};
    s.before = before;
    s.former_peer = former;
    s.joins = joins;
    t.window = peer_window(std::move(s));
    return t.refused(frames::install_history{chunk_id{1}, 0, 0}).empty();
  };
  CHECK(installs(worker_id{1}, true));
  CHECK(!installs(worker_id{0}, true));
  CHECK(!installs(no_worker, true));
  CHECK(!installs(worker_id{1}, false));
}

TEST_CASE("peer_window: factors come clock by clock, each value once, none before it can be due") {
  const auto store =
      std::make_shared<factor_store>(factor_shape{4, 3, 2}, factor_rows(3, {4}), clock_id{5});
  window_on t(2, {{layer_id{7}, store}});
  const auto factors = [&](std::uint64_t clock, std::uint64_t first, std::uint32_t rows = 4) {
    return t.refused(frames::factors{layer_id{7}, clock_id{clock}, rows, first});
  };
  CHECK(factors(4, 0) == "factors: clock of layer 7 is 4, expected 5");
  CHECK(factors(6, 0) == "factors: clock of layer 7 is 6, expected 5");
  CHECK(factors(5, 12) == "factors: first value of layer 7 is 12, expected 0");
  CHECK(factors(5, 0).empty());
  CHECK(factors(5, 0) == "factors: first value of layer 7 is 0, expected 12");
  CHECK(factors(5, 12, 3) == "factors: rows of layer 7 is 3, expected 4");
  CHECK(factors(5, 12).empty());
  CHECK(factors(5, 0) == "factors: clock of layer 7 is 5, expected 6");
  CHECK(factors(6, 0) == "factors: clock of layer 7 is 6, expected at most 5 so far");
  store->set_sent(clock_id{6});
  CHECK(factors(6, 0, 2).empty());  // fewer rows: a shorter u
  CHECK(factors(6, 6, 2).empty());
  CHECK(t.refused(frames::factors{layer_id{8}, clock_id{5}, 4, 0}) ==
        "factors: route of layer 8 is factor_broadcast, expected parameter_server");
}

TEST_CASE(
    "peer_window: P and Q take turns, workers' parts at the owner and its sums at the others") {
  window_on t(2);
  const auto here = std::make_shared<lowrank_turns>(worker_id{1}, 8, 4, clock_id{5});
  const auto there = std::make_shared<lowrank_turns>(worker_id{2}, 8, 4, clock_id{5});
  const auto elsewhere = std::make_shared<lowrank_turns>(worker_id{0}, 8, 4, clock_id{5});
  t.window = peer_window(
      {.self = worker_id{1},
       .peer = worker_id{2},
       .first_clock = clock_id{5},
       .learned = {true},
       .store = t.store,
       .factors = {},
       .lowrank = {{layer_id{6}, elsewhere}, {layer_id{7}, here}, {layer_id{8}, there}}});
  const auto factor = [&](unsigned layer, std::uint64_t clock, bool second) {
    return t.refused(frames::lowrank_factor{layer_id{layer}, clock_id{clock}, second});
  };
  // This node owns the sums of layer 7: the peer's P may come first, its Q when this node has sent the sum of P.
  CHECK(factor(7, 5, true) == "lowrank_factor: step of layer 7 is 11, expected 10");
  CHECK(factor(7, 5, false).empty());
  CHECK(factor(7, 5, false) == "lowrank_factor: step of layer 7 is 10, expected 11");
  CHECK(factor(7, 5, true) == "lowrank_factor: step of layer 7 is 11, expected at most 10 so far");
  here->set_told(clock_id{5}, false);
  CHECK(factor(7, 5, true).empty());
  here->set_told(clock_id{5}, true);
  CHECK(factor(7, 6, false).empty());
  // The peer owns those of layer 8: its sum of P comes when this node has sent its P.
  CHECK(factor(8, 5, false) ==
        "lowrank_factor: step of layer 8 is 10, expected less than 10 so far");
  there->set_told(clock_id{5}, false);
  CHECK(factor(8, 5, false).empty());
  CHECK(factor(8, 5, true) ==
        "lowrank_factor: step of layer 8 is 11, expected less than 11 so far");
  CHECK(factor(6, 5, false) ==
        "lowrank_factor: sender of layer 6 is worker 2, expected worker 0, which owns its sums");
  CHECK(factor(9, 5, false) == "lowrank_factor: route of layer 9 is lowrank, expected another one");
}

TEST_CASE("peer_window: with staleness s a peer may be s clocks ahead, and not one more") {
  const auto factors =
      std::make_shared<factor_store>(factor_shape{1, 1, 1}, factor_rows(3, {1}), clock_id{5}, 2);
  window_on t(2);
  t.window = peer_window(
      {worker_id{1}, worker_id{2}, clock_id{5}, {true}, t.store, {{layer_id{7}, factors}}, 2});
  for (const std::uint64_t clock : {5u, 6u, 7u}) CHECK(t.gradient(1, clock).empty());
  CHECK(t.gradient(1, 8) == "push_gradient: clock of chunk 1 is 8, expected at most 7 so far");
  t.store->set_applied(chunk_id{1}, 6);
  CHECK(t.gradient(1, 8).empty());

  for (const std::uint64_t version : {6u, 7u, 8u}) CHECK(t.fresh(2, version).empty());
  CHECK(t.fresh(2, 9) == "fresh_parameters: version of chunk 2 is 9, expected at most 8 so far");

  const auto squares = [&](std::uint64_t clock) {
    return t.refused(frames::gradient_squares{clock_id{clock}});
  };
  for (const std::uint64_t clock : {5u, 6u, 7u}) CHECK(squares(clock).empty());
  CHECK(squares(8) == "gradient_squares: clock is 8, expected at most 7 so far");

  const auto sent = [&](std::uint64_t clock, std::uint64_t first) {
    return t.refused(frames::factors{layer_id{7}, clock_id{clock}, 1, first});
  };
  for (const std::uint64_t clock : {5u, 6u, 7u})
    for (const std::uint64_t first : {0u, 1u}) CHECK(sent(clock, first).empty());
  CHECK(sent(8, 0) == "factors: clock of layer 7 is 8, expected at most 7 so far");
}

TEST_CASE("peer_window: chunks of the factor route have first values and solver state, no more") {
  partition cut;
  cut.chunks = {{test::only_parameter, 0, 3, every_worker}};
  cut.by_parameter = {{chunk_id{0}}};
  cut.by_owner.resize(3);
  const auto store =
      std::make_shared<parameter_store>(test::one_parameter_net(3).parameters, cut, 3);
  window_on t(0);
  t.window = peer_window({worker_id{1}, worker_id{0}, clock_id{5}, {true}, store, {}});
  const std::string wrong = " of chunk 0 is factor_broadcast, expected parameter_server";
  CHECK(t.gradient(0, 5) == "push_gradient: route" + wrong);
  CHECK(t.refused(frames::install_history{chunk_id{0}, 0}).empty());
  CHECK(t.fresh(0, 5).empty());
  CHECK(t.fresh(0, 6) == "fresh_parameters: route" + wrong);
  CHECK(t.refused(frames::history{chunk_id{0}, 0, version_id{6}}) == "history: route" + wrong);
}

TEST_CASE("peer_window: first values that this node has already come from nobody") {
  window_on t(0);
  peer_window_setup s{worker_id{1}, worker_id{0}, clock_id{5}, {true}, t.store, {}};
  s.has_first = {true};
  peer_window window(std::move(s));
  CHECK_THROWS_WITH(window.admit(frames::fresh_parameters{chunk_id{0}, version_id{5}}),
                    "fresh_parameters: version of chunk 0 is 5, expected 6");
  CHECK_NOTHROW(window.admit(frames::fresh_parameters{chunk_id{0}, version_id{6}}));
}

TEST_CASE("peer_window: values of a parameter that worker 0 gives come from worker 0 alone") {
  for (const unsigned peer : {0u, 2u}) {
    window_on t(peer);
    peer_window_setup s{worker_id{1}, worker_id{peer}, clock_id{5}, {true}, t.store, {}};
    s.given = {true};
    peer_window window(std::move(s));
    CHECK_NOTHROW(window.admit(frames::push_gradient{chunk_id{1}, clock_id{5}, true}));
    t.store->set_applied(chunk_id{1}, 6);
    const frames::push_gradient with_values{chunk_id{1}, clock_id{6}};
    if (peer == 0)
      CHECK_NOTHROW(window.admit(with_values));
    else
      CHECK_THROWS_WITH(window.admit(with_values),
                        "push_gradient: sender of chunk 1 is worker 2, expected worker 0, which "
                        "gives it");
  }
}

TEST_CASE("peer_window: shared state comes in its order, once, and only what this node lacks") {
  window_on t(0);
  peer_window_setup s{worker_id{1}, worker_id{0}, clock_id{5}, {true}, t.store, {}};
  s.shared = {{1, 0}, {3, 0}, {3, 2u << 20}};
  peer_window window(std::move(s));
  CHECK_THROWS_WITH(window.admit(frames::shared_state{0, 0}),
                    "shared_state: first byte is 0 of entry 0, expected 0 of entry 1");
  CHECK_NOTHROW(window.admit(frames::shared_state{1, 0}));
  CHECK_THROWS_WITH(window.admit(frames::shared_state{3, 2u << 20}),
                    "shared_state: first byte is 2097152 of entry 3, expected 0 of entry 3");
  CHECK_NOTHROW(window.admit(frames::shared_state{3, 0}));
  CHECK_NOTHROW(window.admit(frames::shared_state{3, 2u << 20}));
  CHECK_THROWS_WITH(window.admit(frames::shared_state{3, 2u << 20}),
                    "shared_state: first byte is 2097152 of entry 3, expected none, as this node "
                    "has them all");
}
