// What a reader refuses of frames that say who takes part.
#include "messages/wire/codec.hpp"
#include "models/fingerprint.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace poseidon {
namespace {

/// "" if it is read, else why not.
std::string refusal_of_encoded(const frame_header& h) {
  std::vector<std::byte> bytes;
  encode_header(h, {{seat_id{0}, 1}, 0, 0}, bytes);
  try {
    (void)decode_header(bytes);
    return "";
  } catch (const bad_frame& e) {
    return e.what();
  }
}

frames::view view_for_seat(std::uint32_t you, std::vector<std::uint32_t> seats) {
  frames::view v;
  v.you = seat_id{you};
  for (const auto s : seats) v.members.push_back({seat_id{s}, "host:1"});
  return v;
}

frames::next_view next_view_of(std::vector<std::uint32_t> seats) {
  frames::next_view v;
  for (const auto s : seats) v.members.push_back({seat_id{s}, "host:1"});
  return v;
}

TEST_CASE("view frames: members stand by rising seats, each once") {
  CHECK(refusal_of_encoded(view_for_seat(4, {0, 4, 9})) == "");
  CHECK(refusal_of_encoded(next_view_of({1, 2, 7})) == "");
  CHECK(refusal_of_encoded(view_for_seat(4, {4, 0})) ==
        "view: seat is 0, expected more than that of the member before, 4");
  CHECK(refusal_of_encoded(view_for_seat(4, {0, 4, 4})) ==
        "view: seat is 4, expected more than that of the member before, 4");
  CHECK(refusal_of_encoded(next_view_of({7, 2})) ==
        "next_view: seat is 2, expected more than that of the member before, 7");
}

TEST_CASE("view frames: no member has the seat of a node without one") {
  CHECK(!refusal_of_encoded(view_for_seat(0, {0, value(no_seat)})).empty());
  CHECK(!refusal_of_encoded(next_view_of({value(no_seat)})).empty());
  auto prospect = view_for_seat(value(no_seat), {0});
  prospect.prospect = true;
  CHECK(!refusal_of_encoded(prospect).empty());
}

TEST_CASE("view frames: a member's fingerprint is no longer than the one of a handshake") {
  auto v = view_for_seat(4, {0, 4});
  v.members[1].fingerprint = std::string(max_fingerprint_bytes, 'x');
  v.kinds = {{seat_id{0}, "host:1", "oneDNN"}};
  CHECK(refusal_of_encoded(v) == "");
  v.kinds[0].fingerprint = std::string(max_fingerprint_bytes + 1, 'x');
  CHECK(refusal_of_encoded(v) == "view: fingerprint's length is 1023, expected at most 1022");
}

TEST_CASE("view frames: what the first node reads arrives as it was told, within limits") {
  auto v = view_for_seat(4, {0, 4});
  v.data_sets = {{0, "data", "1x28x28 and one value", 960},
                 {1, "data", "3", 18446744073709551615u},
                 {max_test_nets, "", "", 0}};
  std::vector<std::byte> bytes;
  encode_header(v, {}, bytes);
  const auto back = decode_header(bytes);
  CHECK(std::get<frames::view>(back.header).data_sets == v.data_sets);
  v.data_sets[0].net = max_test_nets + 1;
  CHECK(refusal_of_encoded(v) == "view: net of a data set is 65, expected at most 64");
}

TEST_CASE("view frames: a goodbye says whom its reason concerns") {
  using cause = frames::goodbye::cause;
  for (const auto of : {cause::run, cause::left_out, cause::writer, cause::refused}) {
    std::vector<std::byte> bytes;
    encode_header(frames::goodbye{"why", of}, {}, bytes);
    CHECK(std::get<frames::goodbye>(decode_header(bytes).header).of == of);
  }
}

TEST_CASE("view frames: a view has members") {
  CHECK(refusal_of_encoded(next_view_of({})) ==
        "next_view: number of members is 0, expected 1 or more");
  CHECK(refusal_of_encoded(view_for_seat(0, {})) ==
        "view: number of members is 0, expected 1 or more");
}

TEST_CASE("view frames: a prospect is no member, and whoever is no prospect is one") {
  auto v = view_for_seat(5, {0, 4});
  CHECK(refusal_of_encoded(v) == "view: you is 5, expected the seat of a member");
  v.prospect = true;
  CHECK(refusal_of_encoded(v) == "");
  v.you = seat_id{4};
  CHECK(refusal_of_encoded(v) == "view: you is 4, expected a seat that no member has");
}

TEST_CASE("view frames: a witness is no member, and hears views that it is in") {
  auto v = view_for_seat(5, {0, 4});
  v.witnesses = {{seat_id{5}, "host:1"}};
  CHECK(refusal_of_encoded(v) == "");
  v.prospect = true;
  CHECK(refusal_of_encoded(v) == "view: you is 5, expected a seat that no member has");
  v = view_for_seat(4, {0, 4});
  v.witnesses = {{seat_id{4}, "host:1"}};
  CHECK(refusal_of_encoded(v) == "view: seat of a witness is 4, expected one that no member has");
  auto next = next_view_of({1, 2});
  next.witnesses = {{seat_id{0}, "host:1"}, {seat_id{3}, "host:1"}};
  CHECK(refusal_of_encoded(next) == "");
  next.witnesses = {{seat_id{3}, "host:1"}, {seat_id{0}, "host:1"}};
  CHECK(refusal_of_encoded(next) ==
        "next_view: seat is 0, expected more than that of the member before, 3");
}

TEST_CASE("view frames: former members stand by rising seats, and there may be none") {
  auto v = view_for_seat(0, {0, 4});
  v.before.seats = {seat_id{0}, seat_id{3}};
  CHECK(refusal_of_encoded(v) == "");
  v.before.seats = {seat_id{3}, seat_id{3}};
  CHECK(refusal_of_encoded(v) ==
        "view: seat is 3, expected more than that of the member before, 3");
  v.before = {{seat_id{0}}, {6}};
  CHECK(refusal_of_encoded(v) == "view: route is 6, expected at most 5");
}

TEST_CASE("view frames: shares of the next view are those of its members") {
  auto v = next_view_of({0, 4});
  v.shares = {{8, 1}};
  CHECK(refusal_of_encoded(v) ==
        "next_view: number of shares is 1, expected 0, or that of the members, 2");
  v.shares = {{8, 1}, {1, 2}};
  CHECK(refusal_of_encoded(v) ==
        "next_view: samples of a share is 1, expected one for each of its 2 replicas, at least");
  v.shares = {{8, 1}, {4, 2}};
  CHECK(refusal_of_encoded(v) == "");
}

TEST_CASE("view frames: more members than a cluster can have are refused") {
  frames::next_view v;
  for (std::uint32_t s = 0; s <= max_members; ++s) v.members.push_back({seat_id{s}, ""});
  CHECK(refusal_of_encoded(v).starts_with("next_view: number of members is "));
}

TEST_CASE("view frames: a newcomer has replicas") {
  CHECK(refusal_of_encoded(frames::join_ready{1}) == "");
  CHECK(!refusal_of_encoded(frames::join_ready{0}).empty());
}

}  // namespace
}  // namespace poseidon
