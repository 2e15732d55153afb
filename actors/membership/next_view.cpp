#include "actors/membership/next_view.hpp"

#include "data/batch_shares.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace poseidon {

frames::next_view view_without_the_lost(const frames::next_view& newest, const seat_list& stay,
                                        version_id first,
                                        const std::map<seat_id, std::string>& lost,
                                        std::uint64_t batch) {
  auto out = newest;
  std::vector<frames::member> members;
  std::vector<double> weights;
  std::vector<std::uint32_t> replicas;
  for (std::size_t w = 0; w < out.members.size(); ++w) {
    const auto& m = out.members[w];
    if (!has_seat(stay, m.seat)) {
      out.lost.push_back(m.seat);
      continue;
    }
    members.push_back(m);
    if (out.shares.empty()) continue;
    weights.push_back(static_cast<double>(out.shares[w].samples));
    replicas.push_back(out.shares[w].replicas);
  }
  std::erase_if(out.witnesses, [&](const auto& w) {
    const bool goes = !has_seat(stay, w.seat);
    if (goes) out.lost.push_back(w.seat);
    return goes;
  });
  out.why.clear();
  for (const auto& [seat, why] : lost) {
    if (!has_seat(stay, seat)) out.lost.push_back(seat);  // or one that leaves
    out.why += (out.why.empty() ? "" : "; ") + why;
  }
  if (out.why.empty()) out.why = "all members hear each other again";
  std::sort(out.lost.begin(), out.lost.end());
  out.lost.erase(std::unique(out.lost.begin(), out.lost.end()), out.lost.end());
  out.epoch = newest.epoch + 1;
  out.first_clock = clock_id{value(first)};
  out.members = std::move(members);
  out.shares.clear();
  out.lacking.clear();
  if (weights.empty()) return out;
  for (const auto& s : shares_by_weight(out.members.size() * batch, weights, replicas))
    out.shares.push_back({s.samples, s.replicas});
  return out;
}

bool all_have_values(const seat_list& trainers, const testimonies& said) {
  return std::all_of(trainers.begin(), trainers.end(), [&](seat_id m) {
    const auto& stand = said.at(m).stand;
    return stand.whole && !stand.drained;
  });
}

}  // namespace poseidon
