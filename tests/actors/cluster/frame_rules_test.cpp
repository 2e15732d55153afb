#include "actors/cluster/frame_rules.hpp"

#include "messages/frame_table.hpp"
#include "messages/wire/codec.hpp"
#include "tests/actors/cluster/letters_of_stages.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

using namespace poseidon;

namespace {

constexpr seat_id the_leader{0}, the_second{1}, the_third{2};

template <std::size_t... I>
std::vector<frame_header> every_frame(std::index_sequence<I...>) {
  return {frame_header(std::in_place_index<I>)...};
}
std::vector<frame_header> every_frame() {
  return every_frame(std::make_index_sequence<std::variant_size_v<frame_header>>{});
}
bool may_hear(const frame_header& h, const frame_sender& from, seat_id self, node_stage s) {
  return !refusal_of(h, from, {self, the_leader, s});
}
std::string stages_of(const frame_header& h, const frame_sender& from, seat_id self) {
  return test::letters_of_stages([&](node_stage s) { return may_hear(h, from, self, s); });
}

}  // namespace

TEST_CASE("frame_rules: each frame may be heard in the stages in which an honest peer says it") {
  std::map<std::string, std::string> from_leader, to_leader, between;
  for (const auto& h : every_frame()) {
    const std::string kind(kind_name(h));
    if (auto p = stages_of(h, {the_leader}, the_second); !p.empty()) from_leader[kind] = p;
    if (auto p = stages_of(h, {the_second}, the_leader); !p.empty()) to_leader[kind] = p;
    if (auto p = stages_of(h, {the_third}, the_second); !p.empty()) between[kind] = p;
  }
  CHECK(from_leader == std::map<std::string, std::string>{{"drain", "wtcrR"},
                                                          {"gathering", "g"},
                                                          {"gather_history", "wtcrR"},
                                                          {"hold_training", "tcrR"},
                                                          {"probe", "gbwtcrR"},
                                                          {"probe_heard", "gbwtcrR"},
                                                          {"next_view", "bwtcrRp"},
                                                          {"view_accept", "bwtcrRp"},
                                                          {"view_accepted", "bwtcrRp"},
                                                          {"view_prepare", "bwtcrRp"},
                                                          {"view_promise", "bwtcrRp"},
                                                          {"start_training", "wRp"},
                                                          {"stop_after", "tcrR"},
                                                          {"time_net", "g"},
                                                          {"view", "g"},
                                                          {"watch", "bwtcrR"},
                                                          {"worker_left", "tcrR"}});
  CHECK(
      to_leader ==
      std::map<std::string, std::string>{
          {"factor_offer", "tcrR"},    {"gather_history", "wtcrR"},    {"join_ready", "bwtcrR"},
          {"leave_wanted", "gbwtcrR"}, {"member_ready", "bwcrR"},      {"net_timed", "gbwtcrR"},
          {"next_view", "bwtcrRp"},    {"view_accept", "bwtcrRp"},     {"view_accepted", "bwtcrRp"},
          {"view_prepare", "bwtcrRp"}, {"view_promise", "bwtcrRp"},    {"probe", "gbwtcrR"},
          {"probe_heard", "gbwtcrR"},  {"send_rate", "tcrR"},          {"stop_requested", "tcrR"},
          {"suspect", "bwtcrR"},       {"snapshot_requested", "tcrR"}, {"worker_done", "tcrR"},
          {"worker_paused", "tcrR"},   {"worker_report", "tcrR"}});
  CHECK(between == std::map<std::string, std::string>{{"gather_history", "wtcrR"},
                                                      {"next_view", "bwtcrRp"},
                                                      {"view_accept", "bwtcrRp"},
                                                      {"view_accepted", "bwtcrRp"},
                                                      {"view_prepare", "bwtcrRp"},
                                                      {"view_promise", "bwtcrRp"},
                                                      {"probe", "gbwtcrR"},
                                                      {"probe_heard", "gbwtcrR"}});
}

TEST_CASE("frame_rules: a frame for the link or for an actor that trains never reaches a node") {
  for (const auto& h : every_frame())
    if (has_payload(h) && !std::holds_alternative<frames::probe>(h))
      CHECK(stages_of(h, {the_leader}, the_second) == "");
  CHECK(!reaches_node<frames::push_gradient>);
  CHECK(reaches_node<frames::view>);
}

TEST_CASE("frame_rules: the leader is whom the view names") {
  const frame_listener self{the_leader, the_third, node_stage::training};
  CHECK(!refusal_of(frames::hold_training{}, {the_third}, self));
  CHECK(refusal_of(frames::hold_training{}, {the_leader},
                   {the_second, the_third, node_stage::training}));
  CHECK(!refusal_of(frames::worker_done{}, {the_second},
                    {the_third, the_third, node_stage::training}));
}

TEST_CASE("frame_rules: a refusal names the frame, what came and what may come") {
  CHECK(*refusal_of(frames::start_training{}, {the_third},
                    {the_second, the_leader, node_stage::waiting}) ==
        "start_training: sender is worker 2, expected worker 0, the leader");
  CHECK(*refusal_of(frames::start_training{}, {the_leader},
                    {the_second, the_leader, node_stage::training}) ==
        "start_training: stage is training, expected waiting, resuming, parting");
  CHECK(*refusal_of(frames::worker_done{}, {the_third},
                    {the_second, the_leader, node_stage::training}) ==
        "worker_done: receiver is worker 1, expected worker 0, the leader");
  CHECK(*refusal_of(frames::heartbeat{}, {the_third},
                    {the_second, the_leader, node_stage::training}) ==
        "heartbeat: receiver is the node, expected the link or an actor that trains");
}

TEST_CASE(
    "frame_rules: a newcomer may say while others train how fast and that it is ready, and nothing "
    "else") {
  std::map<std::string, std::string> said;
  for (const auto& h : every_frame())
    if (auto p = stages_of(h, {the_third, false}, the_leader); !p.empty())
      said[std::string(kind_name(h))] = p;
  CHECK(said ==
        std::map<std::string, std::string>{{"join_ready", "bwtcrR"}, {"net_timed", "gbwtcrR"}});
  for (const auto& h : every_frame()) CHECK(stages_of(h, {the_third, false}, the_second) == "");
  CHECK(*refusal_of(frames::leave_wanted{}, {the_third, false},
                    {the_leader, the_leader, node_stage::training}) ==
        "leave_wanted: sender is worker 2, which has not joined, expected a member");
}

TEST_CASE(
    "frame_rules: a node that leaves waits for start_training, or a view that replaces the next "
    "one") {
  for (const auto& h : every_frame())
    CHECK(may_hear(h, {the_leader}, the_second, node_stage::parting) ==
          (std::holds_alternative<frames::start_training>(h) ||
           std::holds_alternative<frames::next_view>(h) || kind_name(h).starts_with("view_")));
}

namespace {

using kind_set = std::set<std::string>;

std::vector<node_stage> stages_of_members() {
  std::vector<node_stage> out;
  for (std::size_t s = 0; s < names_of_stages.size(); ++s)
    if (contains(stages::taking_part, static_cast<node_stage>(s)))
      out.push_back(static_cast<node_stage>(s));
  return out;
}

/// Frames for which `to` ends its link to the sender, in any stage of a run.
kind_set bad_frames(const frame_sender& from, frame_listener to) {
  kind_set out;
  for (const auto stage : stages_of_members()) {
    to.stage = stage;
    for (const auto& h : every_frame())
      if (row_of_kind(h).path != frame_path::link && refusal_of(h, from, to) &&
          !is_of_another_view(h, from, to))
        out.emplace(kind_name(h));
  }
  return out;
}

/// A link keeps the order, so nobody says these late.
const kind_set before_a_view{"gathering", "time_net", "view"};
const kind_set of_a_leader{"drain",    "gathering", "hold_training", "start_training", "stop_after",
                           "time_net", "view",      "watch",         "worker_left"};
const kind_set to_a_leader{"factor_offer",       "join_ready",  "leave_wanted",   "member_ready",
                           "net_timed",          "send_rate",   "stop_requested", "suspect",
                           "snapshot_requested", "worker_done", "worker_paused",  "worker_report"};

kind_set operator+(kind_set a, const kind_set& b) {
  a.insert(b.begin(), b.end());
  return a;
}

// The second node leads since the change of the view, the first one led before it.
constexpr frame_listener new_leader{the_second, the_second, {}, false};
constexpr frame_listener other_member{the_third, the_second, {}, false};
constexpr frame_listener former_leader{the_leader, the_second, {}, true};

}  // namespace

TEST_CASE("frame_rules: who has not heard of a change of the view ends no link by what it says") {
  for (const bool is_member : {true, false}) {  // false: it has left
    CAPTURE(is_member);
    const auto wrote = written_in::earlier_view;
    CHECK(bad_frames({the_leader, is_member, wrote, true}, new_leader) == before_a_view);
    CHECK(bad_frames({the_third, is_member, wrote}, former_leader) == of_a_leader);
    // Which no honest node says: it has never led, and nor has the reader.
    CHECK(bad_frames({the_third, is_member, wrote}, new_leader) == of_a_leader);
    CHECK(bad_frames({the_leader, is_member, wrote, true}, other_member) ==
          before_a_view + to_a_leader);
    CHECK(bad_frames({seat_id{3}, is_member, wrote}, other_member) == of_a_leader + to_a_leader);
  }
}

TEST_CASE("frame_rules: who knows a view of which this node has not heard ends no link") {
  for (const auto& to : {new_leader, other_member, former_leader})
    CHECK(bad_frames({the_third, true, written_in::later_view}, to) == before_a_view);
}

TEST_CASE("frame_rules: who says in this view what only its leader may has no excuse") {
  for (const char* kind : {"drain", "hold_training", "stop_after", "watch", "worker_left"})
    CHECK(bad_frames({the_leader, true, written_in::same_view, true}, new_leader).contains(kind));
  CHECK(bad_frames({the_leader, true, written_in::same_view, true}, other_member)
            .contains("worker_done"));
}
