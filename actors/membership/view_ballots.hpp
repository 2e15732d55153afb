// actors/membership/view_ballots.hpp - the ballots by which members decide the next view, as the frames that carry them.
#pragma once
#include "actors/membership/ballot_box.hpp"
#include "messages/frames.hpp"

#include <optional>
#include <vector>

namespace poseidon {

using view_box = ballot_box<frames::next_view>;

[[nodiscard]] frame_header frame_of(const view_box::message& m);
/// Empty: the frame is none of a ballot. A view that is told is none.
[[nodiscard]] std::optional<view_box::message> message_of(const frame_header& f);

/// By rising seat, as members of a view are.
[[nodiscard]] seat_list seats_of(const std::vector<frames::member>& members);
/// Those that decide what follows this view: its members and its witnesses.
[[nodiscard]] seat_list voters_of(const frames::next_view& view);
/// The ballot box of one of them.
[[nodiscard]] view_box box_of(const frames::next_view& view, seat_id self,
                              quorum_rule* decides = &quorum);

}  // namespace poseidon
