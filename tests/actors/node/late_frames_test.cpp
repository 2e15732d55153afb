// A node says something in a view that the others have left meanwhile: it counts for nothing, and ends no link. Each frame that a node
// may say is said late by the leader of before, which has left, by another node that has left, and by a member to the leader of before.
#include "tests/actors/node/node_rig.hpp"

#include <string>
#include <utility>
#include <vector>

using namespace poseidon;
using test::node_rig;

namespace {

constexpr std::uint64_t earlier_epoch = 1, later_epoch = 2;  // views

std::vector<frame_header> said_by_a_leader() {
  return {frames::start_training{}, frames::drain{clock_id{4}},
          frames::hold_training{},  frames::stop_after{version_id{20}, "asked to"},
          frames::watch{1, 1000},   frames::worker_left{seat_id{1}, version_id{3}}};
}
std::vector<frame_header> said_to_a_leader() {
  return {frames::suspect{seat_id{9}, "lost"},
          frames::leave_wanted{"asked to"},
          frames::member_ready{1, earlier_epoch},
          frames::worker_paused{clock_id{3}},
          frames::worker_done{version_id{40}},
          frames::snapshot_requested{},
          frames::factor_offer{},
          frames::send_rate{100},
          frames::net_timed{1, 10},
          frames::report{}};
}
std::vector<frame_header> said_by_all() {
  return {frames::gather_history{version_id{3}},
          frames::probe{1, true},
          frames::probe_heard{1},
          frames::view_prepare{earlier_epoch, {1, seat_id{2}}},
          frames::view_promise{earlier_epoch, {1, seat_id{2}}, {1, seat_id{2}}},
          frames::view_accepted{earlier_epoch, {1, seat_id{2}}, {1, seat_id{2}}}};
}

std::vector<frame_header> operator+(std::vector<frame_header> a,
                                    const std::vector<frame_header>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Comes to `reader` as the next frame on its link to `writer`.
void say(const node_rig& t, std::size_t writer, std::size_t reader, std::uint64_t epoch,
         const frame_header& h) {
  for (const auto& l : t.wiring->lines)
    for (const int side : {0, 1})
      if (l->hosts[side] == t.nodes[reader]->at && l->hosts[1 - side] == t.nodes[writer]->at)
        l->put(side, {{seat_id{static_cast<std::uint32_t>(writer)}, epoch}, h, {}});
}

/// Three nodes, of which one leaves; the others are in the view without it when `reader` hears the frame.
struct one_left : node_rig {
  explicit one_left(std::size_t leaver, std::size_t reader) {
    survive = 1;
    shows = true;
    clocks = 40;
    cluster(3);
    REQUIRE(until_clock(3));
    sim.tell(nodes[leaver]->it, interrupted{15, false, true});
    for (int steps = 0; !has_changed(leaver, reader); ++steps) {
      REQUIRE(steps < 100'000);
      if (steps % 50 == 0 || !sim.step()) sim.pass(std::chrono::milliseconds{20});
    }
  }
  /// The node that leaves is told so, the others have begun the next view.
  [[nodiscard]] bool has_changed(std::size_t leaver, std::size_t reader) const {
    return reader == leaver ? nodes[leaver]->display->said("left the run before iteration ")
                            : nodes[reader]->display->views.size() == 2;
  }
  void end() {
    for (int ticks = 0; ticks < 1000 && !all_ended(); ++ticks) {
      sim.settle();
      sim.pass(std::chrono::milliseconds{20});
    }
  }
  [[nodiscard]] bool said(const std::string& what) const {
    for (const auto& n : nodes)
      if (n->display->said(what)) return true;
    return false;
  }
};

void nothing_happens(std::size_t leaver, std::size_t writer, std::size_t reader,
                     const std::vector<frame_header>& all) {
  for (const auto& h : all) {
    const std::string kind(kind_name(h));
    CAPTURE(kind);
    one_left t(leaver, reader);
    say(t, writer, reader, earlier_epoch, h);
    t.end();
    const auto ends = t.ends();
    CAPTURE(ends);
    CHECK(!t.said("sent a bad frame"));
    CHECK(!t.said("is lost"));
    for (std::size_t n = 0; n < t.nodes.size(); ++n)
      CHECK(t.nodes[n]->exit_code() == (n == leaver ? 143 : 0));
  }
}

}  // namespace

TEST_CASE("node: what the leader said before it left comes late, and ends nobody's link to it") {
  nothing_happens(0, 0, 1, said_by_a_leader() + said_by_all());
}

TEST_CASE("node: what a node said to the leader before it left comes late, and ends no link") {
  nothing_happens(2, 2, 0, said_to_a_leader() + said_by_all());
}

TEST_CASE("node: a member says something to a leader that has left meanwhile, and loses no link") {
  nothing_happens(0, 1, 0, said_to_a_leader() + said_by_all());
}

TEST_CASE(
    "node: the others may have agreed on a view that this node leads before it has noticed "
    "anything, "
    "and what they say to its leader is kept") {
  for (const auto& h : {frame_header(frames::member_ready{1, later_epoch}),
                        frame_header(frames::suspect{seat_id{9}, "lost"})}) {
    const std::string kind(kind_name(h));
    CAPTURE(kind);
    node_rig t;
    t.survive = 1;
    t.clocks = 20;
    t.cluster(3);
    REQUIRE(t.until_clock(3));
    say(t, 2, 1, earlier_epoch, h);
    t.sim.settle();
    for (const auto& n : t.nodes) {
      CHECK(!n->display->said("sent a bad frame"));
      CHECK(n->exit_code() == 0);
    }
  }
}

TEST_CASE("node: what only the leader may say ends the link of one who says it in this view") {
  for (const auto& h : {frame_header(frames::watch{1, 1000}), frame_header(frames::drain{})}) {
    one_left t(0, 2);
    say(t, 0, 2, later_epoch, h);
    t.end();
    CHECK(t.said("sent a bad frame"));
  }
}
