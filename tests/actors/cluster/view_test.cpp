#include "actors/cluster/view.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

agreed_view of_four(std::uint32_t self) {
  frames::view told;
  told.epoch = 1;
  told.you = worker_id{self};
  told.members = {"a:1", "b:1", "c:1", "d:1"};
  told.routes = {0, 0};
  return view_told(told, worker_id{0});
}

}  // namespace

TEST_CASE("view: each pair of members but those with the leader is dialed by the later one") {
  CHECK(of_four(1).to_dial().empty());
  CHECK(of_four(3).to_dial() == std::vector{worker_id{1}, worker_id{2}});
  CHECK(of_four(1).is_dialed_by(worker_id{3}));
  CHECK(!of_four(3).is_dialed_by(worker_id{1}));
  CHECK(!of_four(1).is_dialed_by(worker_id{4}));
  CHECK(!agreed_view{}.is_dialed_by(worker_id{1}));
}

TEST_CASE("view: the leader's forms when all nodes are in") {
  const auto alone = view_of_leader();
  CHECK(alone.leads());
  CHECK(alone.epoch == 0);
  CHECK(alone.name_of(worker_id{0}) == "worker 0");
  const auto v = formed(alone, {"a:1", "b:1"});
  CHECK(v.epoch == 1);
  CHECK(v.leads());
  CHECK(v.name_of(worker_id{1}) == "worker 1 (b:1)");
  CHECK(v.name_of(worker_id{2}) == "worker 2");
  CHECK(v.lines() ==
        std::vector<std::string>{"view 1: worker 0 (a:1), this node", "view 1: worker 1 (b:1)"});
}

TEST_CASE("view: other routes make a new view with the same members, from a clock on") {
  const auto v = with_routes(of_four(2), {clock_id{20}, {1, 0}, "links are slow"});
  CHECK(v.epoch == 2);
  CHECK(v.self == worker_id{2});
  CHECK(v.members == of_four(2).members);
  CHECK(v.first_clock == clock_id{20});
  CHECK(v.routes == std::vector<std::uint8_t>{1, 0});
}
