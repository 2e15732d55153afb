#include "actors/node/kept_state.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using is = view_facts::former_state;

namespace {

const auto some = std::make_shared<chunk_histories>(), other = std::make_shared<chunk_histories>();
const auto a_cut = std::make_shared<const partition>();

}  // namespace

TEST_CASE("kept_state: copies of another node's solver state are there by its owner") {
  kept_state k;
  k.add({nullptr, {{worker_id{2}, other}}});
  k.add({some});
  CHECK(k.histories().size() == 1);
  CHECK(k.histories().front() == some);
  CHECK(k.copies_of(worker_id{2}) == other);
  CHECK(k.copies_of(worker_id{1}) == nullptr);
}

TEST_CASE("kept_state: what a view began with can be given again, once it has begun") {
  kept_state k;
  k.add({some});
  k.was_cut(a_cut);
  k.was_cut(std::make_shared<const partition>());  // of a view that was replaced
  CHECK(k.before() == a_cut);
  CHECK(k.former() == is::gone);
  k.view_begins(true);
  CHECK(k.before() == nullptr);
  CHECK(k.histories().empty());
  CHECK(k.former() == is::here);
  CHECK(k.cut_of(false) == nullptr);
  CHECK(k.cut_of(true) == a_cut);
  k.give_again();
  REQUIRE(k.histories().size() == 1);
  CHECK(k.histories().front() == some);
  CHECK(k.cut_of(false) == a_cut);
}

TEST_CASE("kept_state: a node that came with a view had nothing before it") {
  kept_state k;
  k.view_begins(true);
  CHECK(k.former() == is::arrived);
}

TEST_CASE("kept_state: nothing is kept of a view that cannot begin again") {
  kept_state k;
  k.add({some});
  k.was_cut(a_cut);
  k.view_begins(false);
  CHECK(k.former() == is::gone);
}
