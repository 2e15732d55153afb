// tests/actors/node/program_checks.hpp - what holds at the end of a run of programs, whoever came or was lost.
#pragma once
#include "tests/actors/node/program_rig.hpp"

#include <algorithm>
#include <set>

namespace poseidon::test {

/// Whose gradients a mean is made of, by the numbers of the workers.
inline std::set<std::size_t> makers_of(float mean, std::uint64_t clock, std::size_t workers) {
  const auto sum = static_cast<std::uint64_t>(mean * static_cast<float>(workers)) / (1 + clock % 5);
  std::set<std::size_t> out;
  for (std::size_t n = 0; n < 32; ++n)
    if ((sum >> n & 1) != 0) out.insert(n);
  return out;
}

/// The workers whose gradients the means of a clock are to be made of.
inline std::set<std::size_t> members_at(const std::vector<program_view>& views,
                                        std::uint64_t clock) {
  std::set<std::size_t> out;
  for (const auto& v : views)
    if (v.first_clock <= clock) {
      out.clear();
      for (const auto s : v.seats) out.insert(value(s));
    }
  return out;
}

inline void check_means_of(const sim_program& of) {
  const auto views = of.around->views.all();
  for (auto clock = of.first_clock(); clock < of.means().size(); ++clock) {
    CAPTURE(clock);
    const auto members = members_at(views, clock);
    const auto& means = of.means()[clock];
    for (std::size_t p = 0; p < sim_program::parameters; ++p) {
      CAPTURE(p);
      if (p == sim_program::rarely && clock % 3 == 1) {
        CHECK(means[p].empty());
        continue;
      }
      // What the first of them gives may have been lost with it: then nobody has it in this clock.
      if (p == sim_program::given && means[p].empty()) continue;
      REQUIRE(!means[p].empty());
      CAPTURE(means[p].front());
      CHECK(std::all_of(means[p].begin(), means[p].end(),
                        [&](float v) { return v == means[p].front(); }));
      const bool is_given = p == sim_program::given;
      const auto makers = makers_of(means[p].front(), clock, is_given ? 1 : members.size());
      CHECK(makers == (is_given ? std::set{*members.begin()} : members));
    }
  }
}

inline void check_the_end(const program_rig& t) {
  auto ends = t.ends();
  for (const auto& p : t.programs) ends += "\n" + p->state();
  CAPTURE(ends);
  const sim_program* first = nullptr;
  std::vector<const sim_program*> left;
  for (std::size_t n = 0; n < t.nodes.size(); ++n) {
    CAPTURE(n);
    CHECK(!t.nodes[n]->display->said("sent a bad frame"));
    if (t.killed.contains(n)) continue;
    REQUIRE(t.nodes[n]->result);
    // Who is about to join when another one is lost, and has trained no clock, may be sent away, or come too late.
    const bool trained = t.programs[n]->means().size() > t.programs[n]->first_clock();
    if (n >= t.began_with && !trained && !t.nodes[n]->error().empty()) continue;
    CHECK(t.nodes[n]->error() == "");
    CHECK(t.nodes[n]->exit_code() == 0);
    const auto& program = *t.programs[n];
    if (!program.has_left()) CHECK(program.means().size() == t.clocks);
    check_means_of(program);
    if (program.has_left()) {
      left.push_back(&program);
      continue;
    }
    if (first == nullptr) first = &program;
    CHECK(program.means() == first->means());
  }
  // All that had trained may have been killed before the others had what they had trained.
  CHECK((first != nullptr || !left.empty() || t.nodes.size() > t.began_with));
  // Who has gone on without one that left may have been killed before the others had what both had trained.
  if (first == nullptr || !t.killed.empty()) return;
  for (const auto* of : left) {
    REQUIRE(of->means().size() <= first->means().size());
    CHECK(std::equal(of->means().begin(), of->means().end(), first->means().begin()));
  }
}

}  // namespace poseidon::test
