// Frames of another view than the one that a link is bound to.
#include "actors/parameters/peer_window.hpp"
#include "tests/actors/fakes.hpp"
#include "tests/actors/links/puppet_link.hpp"

namespace poseidon {
namespace {

using test::piece_with_header;

/// The peer has seat 1, and was let in when two nodes had left: here it is worker 3. The view is the 5th.
test::end_options in_view_5() {
  test::end_options o;
  o.epoch = 5;
  o.worker = worker_id{3};
  return o;
}

std::vector<std::byte> gradient_of_view(std::uint64_t epoch, std::uint32_t chunk = 0) {
  const std::vector<std::byte> values(4000);
  return piece_with_header(frames::push_gradient{chunk_id{chunk}, clock_id{9}}, values,
                           values.size(), {seat_id{1}, epoch});
}

TEST_CASE(
    "link_receiver: values of an earlier view are read and dropped, and those of this one arrive") {
  test::link_and_puppet t(in_view_5());
  t.puppet->write(gradient_of_view(4));
  // Neither the sizes nor the chunks of that view are this one's.
  t.puppet->write(gradient_of_view(3, 99));
  const std::vector<std::byte> longer(8000);
  t.puppet->write(piece_with_header(frames::fresh_parameters{chunk_id{2}, version_id{1}}, longer,
                                    longer.size(), {seat_id{1}, 4}));
  t.puppet->write(piece_with_header(frames::worker_report{}, {}, 0, {seat_id{1}, 4}));
  t.puppet->write(gradient_of_view(5, 2));
  const auto got = t.end.gradients->wait_for(1);
  REQUIRE(got.size() == 1);
  CHECK(got[0].chunk == chunk_id{2});
  CHECK(got[0].from == worker_id{3});
  CHECK(t.end.landed->size() == 0);
  CHECK(t.end.control->size() == 0);
  CHECK(t.end.lost->size() == 0);
  t.puppet->shutdown();
}

TEST_CASE("link_receiver: a gate is not asked about frames of an earlier view") {
  auto o = in_view_5();
  const auto store = test::one_parameter_store(2000, 1000, 2);
  store->publish(test::only_parameter, 9);
  o.chunks = 2;
  o.gate = std::make_shared<peer_window>(
      peer_window_setup{worker_id{0}, worker_id{3}, clock_id{9}, {true}, store, {}});
  test::link_and_puppet t(o);
  t.puppet->write(gradient_of_view(4));
  t.puppet->write(gradient_of_view(5));  // the first of clock 9, as far as the gate knows
  CHECK(t.end.gradients->wait_for(1).size() == 1);
  CHECK(t.end.lost->size() == 0);
  t.puppet->shutdown();
}

TEST_CASE("link_receiver: values of a later view than this node's end the link with both numbers") {
  test::link_and_puppet t(in_view_5());
  t.puppet->write(gradient_of_view(6));
  CHECK(
      t.lost().why.starts_with("worker 1 (10.0.0.8:7600) sent a bad frame: push_gradient: epoch is "
                               "6, expected 5, as of this "
                               "node's view"));
  CHECK(t.end.gradients->size() == 0);
}

TEST_CASE("link_receiver: what nodes agree on is heard whatever the view of either") {
  test::link_and_puppet t(in_view_5());
  for (const std::uint64_t epoch : {4, 6, 0})
    t.puppet->write(
        piece_with_header(frames::stop_requested{"enough"}, {}, 0, {seat_id{1}, epoch}));
  const auto got = t.end.control->wait_for(3);
  REQUIRE(got.size() == 3);
  CHECK(got[0].seat == seat_id{1});
  CHECK(got[0].from == worker_id{3});
  t.puppet->shutdown();
}

TEST_CASE("link_receiver: what the leader of another view asks for its page is read and dropped") {
  test::link_and_puppet t(in_view_5());
  const auto ask = [&](std::int64_t at, std::uint64_t epoch) {
    t.puppet->write(piece_with_header(frames::watch{at, 1000}, {}, 0, {seat_id{1}, epoch}));
  };
  ask(1, 4);
  ask(2, 6);
  ask(3, 5);
  const auto got = t.end.control->wait_for(1);
  REQUIRE(got.size() == 1);
  CHECK(std::get<frames::watch>(got[0].header).sent_ns == 3);
  CHECK(t.end.lost->size() == 0);
  t.puppet->shutdown();
}

TEST_CASE("link_receiver: reports reach a leader that has left, and end its link no more") {
  auto o = in_view_5();
  o.watches = true;  // but nobody reads them
  test::link_and_puppet t(o);
  for (const std::uint64_t epoch : {4, 5})
    t.puppet->write(piece_with_header(frames::report{}, {}, 0, {seat_id{1}, epoch}));
  t.puppet->write(piece_with_header(frames::stop_requested{"enough"}, {}, 0, {seat_id{1}, 5}));
  CHECK(t.end.control->wait_for(1).size() == 1);
  CHECK(t.end.lost->size() == 0);
  t.puppet->shutdown();
}

TEST_CASE("network_link: what its sender says of a view that is over does not leave") {
  test::system_rig rig;
  const auto [sa, sb] = test::socket_pair();
  auto here = in_view_5(), there = in_view_5();
  there.self = seat_id{1};
  there.peer = seat_id{0};
  auto a = test::make_end(rig, sa, here), b = test::make_end(rig, sb, there);
  const auto say = [&](std::uint64_t version, std::uint64_t epoch) {
    tell_from_outside(a.link,
                      send_frame{frames::gather_history{version_id{version}}, {}, 0, epoch});
  };
  say(3, 4);
  say(7, 5);
  say(8, 0);
  const auto got = b.control->wait_for(2);
  REQUIRE(got.size() == 2);
  CHECK(std::get<frames::gather_history>(got[0].header).version == version_id{7});
  CHECK(std::get<frames::gather_history>(got[1].header).version == version_id{8});
}

TEST_CASE("network_link: a frame says in which view its link is bound") {
  test::system_rig rig;
  const auto [sa, sb] = test::socket_pair();
  auto one = in_view_5(), other = in_view_5();
  other.self = seat_id{1};
  other.peer = seat_id{0};
  other.epoch = 6;
  auto a = test::make_end(rig, sa, one), b = test::make_end(rig, sb, other);
  a.send(frames::push_gradient{chunk_id{0}, clock_id{9}}, 1000, 1.0f, 0);  // dropped there
  b.send(frames::push_gradient{chunk_id{0}, clock_id{9}}, 1000, 1.0f, 0);
  const auto lost = a.lost->wait_for(1);
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].why.find("push_gradient: epoch is 6, expected 5") != std::string::npos);
  CHECK(b.gradients->size() == 0);
}

}  // namespace
}  // namespace poseidon
