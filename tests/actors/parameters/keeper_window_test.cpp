// What a keeper of solver state lets the owner of a chunk send.
#include "actors/parameters/peer_window.hpp"
#include "models/plan/keepers.hpp"
#include "tests/actors/fakes.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace poseidon;

namespace {

/// Worker 1 of three, whose run begins at clock 5. Chunks 0, 1, 2 of one parameter belong to workers 0, 1, 2: it keeps chunk 0.
struct window_of_keeper {
  std::shared_ptr<parameter_store> store;
  std::optional<peer_window> window;

  window_of_keeper() {
    auto cut = test::one_parameter_store(3, 1, 3)->cut();
    const auto n = test::one_parameter_net(3);
    set_keepers(cut, n.parameters, 1);
    store = std::make_shared<parameter_store>(n.parameters, cut, 3);
    store->publish(test::only_parameter, 5);
  }
  void opens_to(unsigned peer, std::uint64_t staleness = 0) {
    window.emplace(peer_window_setup{
        worker_id{1}, worker_id{peer}, clock_id{5}, {true}, store, {}, staleness});
  }
  std::string refused(const frame_header& h) {
    try {
      window->admit(h);
      return "";
    } catch (const bad_frame& e) {
      return e.what();
    }
  }
  std::string fresh(unsigned chunk, std::uint64_t version) {
    return refused(frames::fresh_parameters{chunk_id{chunk}, version_id{version}});
  }
  std::string sum(unsigned chunk, std::uint64_t clock) {
    return refused(frames::summed_gradient{chunk_id{chunk}, clock_id{clock}});
  }
  std::string state(unsigned chunk) { return refused(frames::install_history{chunk_id{chunk}, 0}); }
};

}  // namespace

TEST_CASE(
    "peer_window: a keeper gets the sum of each clock in place of the values, once, in order") {
  window_of_keeper t;
  t.opens_to(0);
  constexpr auto last = ~std::uint64_t{0};
  for (const auto clock : {std::uint64_t{4}, std::uint64_t{5}, last})
    CHECK(t.sum(0, clock) ==
          "summed_gradient: time of chunk 0 is now, expected after the chunk's first values");
  CHECK(t.fresh(0, 5).empty());
  CHECK(t.sum(0, last) == "summed_gradient: clock of chunk 0 is 18446744073709551615, expected 5");
  CHECK(t.sum(0, 4) == "summed_gradient: clock of chunk 0 is 4, expected 5");
  CHECK(t.sum(0, 6) == "summed_gradient: clock of chunk 0 is 6, expected 5");
  CHECK(t.sum(2, 5) == "summed_gradient: owner of chunk 2 is worker 2, expected worker 0");
  CHECK(
      t.fresh(0, 6) ==
      "fresh_parameters: receiver of chunk 0 is its keeper, expected a node that keeps no copy of "
      "its solver state");
  CHECK(t.sum(0, 5).empty());
  CHECK(t.sum(0, 5) == "summed_gradient: clock of chunk 0 is 5, expected 6");
  CHECK(t.sum(0, 6) == "summed_gradient: clock of chunk 0 is 6, expected at most 5 so far");
  t.store->publish(test::only_parameter, 6);
  CHECK(t.sum(0, 6).empty());
}

TEST_CASE("peer_window: a node that does not keep a chunk gets its values, and no sum") {
  window_of_keeper t;
  t.opens_to(2);
  CHECK(t.sum(2, 5) ==
        "summed_gradient: receiver of chunk 2 is worker 1, expected a keeper of its solver state");
  CHECK(t.fresh(2, 6).empty());
}

TEST_CASE("peer_window: with staleness s sums may be s clocks ahead, and not one more") {
  window_of_keeper t;
  t.opens_to(0, 2);
  CHECK(t.fresh(0, 5).empty());
  for (const std::uint64_t clock : {5u, 6u, 7u}) CHECK(t.sum(0, clock).empty());
  CHECK(t.sum(0, 8) == "summed_gradient: clock of chunk 0 is 8, expected at most 7 so far");
}

TEST_CASE(
    "peer_window: solver state goes to a chunk's keepers as to its owner, before any update") {
  window_of_keeper t;
  t.opens_to(0);
  CHECK(t.state(0).empty());
  CHECK(t.state(1).empty());
  CHECK(t.state(2) == "install_history: owner of chunk 2 is worker 2, expected worker 1");
  t.store->set_applied(chunk_id{0}, 6);
  CHECK(t.state(0) ==
        "install_history: time of chunk 0 is version 6, expected before the first update");
}
