#include "actors/cluster/frame_rules.hpp"

#include "messages/wire/codec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

using namespace poseidon;

namespace {

constexpr worker_id the_leader{0}, the_second{1}, the_third{2};

template <std::size_t... I>
std::vector<frame_header> every_frame(std::index_sequence<I...>) {
  return {frame_header(std::in_place_index<I>)...};
}
std::vector<frame_header> every_frame() {
  return every_frame(std::make_index_sequence<std::variant_size_v<frame_header>>{});
}
bool may_hear(const frame_header& h, worker_id from, worker_id self, run_phase p) {
  return !refusal_of(h, from, {self, the_leader, p});
}
/// Phases in which the frame may be heard, by a letter each.
std::string phases_of(const frame_header& h, worker_id from, worker_id self) {
  std::string out;
  for (unsigned p = 0; p < 10; ++p)
    if (may_hear(h, from, self, static_cast<run_phase>(p))) out += "sgbwtcrRfe"[p];
  return out;
}

}  // namespace

TEST_CASE("frame_rules: each frame may be heard in the phases in which an honest peer says it") {
  std::map<std::string, std::string> from_leader, to_leader, between;
  for (const auto& h : every_frame()) {
    const std::string kind(kind_name(h));
    if (auto p = phases_of(h, the_leader, the_second); !p.empty()) from_leader[kind] = p;
    if (auto p = phases_of(h, the_second, the_leader); !p.empty()) to_leader[kind] = p;
    if (auto p = phases_of(h, the_third, the_second); !p.empty()) between[kind] = p;
  }
  CHECK(from_leader == std::map<std::string, std::string>{{"change_routes", "wtcrR"},
                                                          {"gather_history", "wtcrR"},
                                                          {"hold_training", "tcrR"},
                                                          {"probe", "gbwtcrR"},
                                                          {"probe_heard", "gbwtcrR"},
                                                          {"rebuild_graph", "t"},
                                                          {"start_training", "wR"},
                                                          {"stop_after", "tcrR"},
                                                          {"time_net", "g"},
                                                          {"view", "g"},
                                                          {"watch", "bwtcrR"},
                                                          {"worker_left", "tcrR"}});
  CHECK(to_leader == std::map<std::string, std::string>{{"factor_offer", "tcrR"},
                                                        {"gather_history", "wtcrR"},
                                                        {"member_ready", "bwcrR"},
                                                        {"net_timed", "g"},
                                                        {"probe", "gbwtcrR"},
                                                        {"probe_heard", "gbwtcrR"},
                                                        {"send_rate", "tcrR"},
                                                        {"stop_requested", "tcrR"},
                                                        {"snapshot_requested", "tcrR"},
                                                        {"worker_done", "tcrR"},
                                                        {"worker_paused", "tcrR"},
                                                        {"worker_report", "tcrR"}});
  CHECK(between == std::map<std::string, std::string>{{"gather_history", "wtcrR"},
                                                      {"probe", "gbwtcrR"},
                                                      {"probe_heard", "gbwtcrR"}});
}

TEST_CASE("frame_rules: a frame for the link or for an actor that trains never reaches a node") {
  for (const auto& h : every_frame())
    if (has_payload(h) && !std::holds_alternative<frames::probe>(h))
      CHECK(phases_of(h, the_leader, the_second) == "");
  CHECK(!reaches_node<frames::push_gradient>);
  CHECK(reaches_node<frames::view>);
}

TEST_CASE("frame_rules: the leader is whom the view names") {
  const frame_listener self{the_leader, the_third, run_phase::training};
  CHECK(!refusal_of(frames::hold_training{}, the_third, self));
  CHECK(refusal_of(frames::hold_training{}, the_leader,
                   {the_second, the_third, run_phase::training}));
  CHECK(
      !refusal_of(frames::worker_done{}, the_second, {the_third, the_third, run_phase::training}));
}

TEST_CASE("frame_rules: a refusal names the frame, what came and what may come") {
  CHECK(*refusal_of(frames::start_training{}, the_third,
                    {the_second, the_leader, run_phase::waiting}) ==
        "start_training: sender is worker 2, expected worker 0, the leader");
  CHECK(*refusal_of(frames::start_training{}, the_leader,
                    {the_second, the_leader, run_phase::training}) ==
        "start_training: phase is training, expected waiting, resuming");
  CHECK(*refusal_of(frames::worker_done{}, the_third,
                    {the_second, the_leader, run_phase::training}) ==
        "worker_done: receiver is worker 1, expected worker 0, the leader");
  CHECK(
      *refusal_of(frames::heartbeat{}, the_third, {the_second, the_leader, run_phase::training}) ==
      "heartbeat: receiver is the node, expected the link or an actor that trains");
}
