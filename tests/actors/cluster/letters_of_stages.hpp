// tests/actors/cluster/letters_of_stages.hpp - the stages in which a node may hear a frame, as a few letters.
#pragma once
#include "messages/node_stage.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace poseidon::test {

/// s starting, g gathering, b building or discarding, w waiting, t in the view that holds (five stages), c releasing or ending,
/// r rebuilding, R resuming, p parting, f failing, e ended. "?" behind a letter: in some of its stages only.
template <class MayHear>
std::string letters_of_stages(MayHear may_hear) {
  using enum node_stage;
  const std::vector<std::pair<char, std::vector<node_stage>>> groups{
      {'s', {starting}},
      {'g', {gathering}},
      {'b', {building, discarding}},
      {'w', {waiting}},
      {'t', {training, draining, drained, freezing, frozen}},
      {'c', {releasing, ending}},
      {'r', {rebuilding}},
      {'R', {resuming}},
      {'p', {parting}},
      {'f', {failing}},
      {'e', {ended}}};
  std::string out;
  for (const auto& [letter, stages] : groups) {
    const auto n = std::count_if(stages.begin(), stages.end(), may_hear);
    if (n == 0) continue;
    out += letter;
    if (static_cast<std::size_t>(n) < stages.size()) out += '?';
  }
  return out;
}

}  // namespace poseidon::test
