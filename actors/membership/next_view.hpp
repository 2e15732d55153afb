// actors/membership/next_view.hpp - the view that follows after losses, as all are told it.
#pragma once
#include "actors/membership/next_members.hpp"
#include "messages/frames.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace poseidon {

/// The newest view without those that do not stay. `lost`: of whom this node knows that they are lost, and why; some of them may have
/// left already, and some may be heard again. `batch`: the samples of one node's net, for the shares of the batch. Where no member of
/// it lacks a value of iteration 0, it says so.
[[nodiscard]] frames::next_view view_without_the_lost(const frames::next_view& newest,
                                                      const seat_list& stay, version_id first,
                                                      const std::map<seat_id, std::string>& lost,
                                                      std::uint64_t batch);

/// All of these have the first version whole, and do not just build a view that begins with it: they need no values.
[[nodiscard]] bool all_have_values(const seat_list& trainers, const testimonies& said);

}  // namespace poseidon
