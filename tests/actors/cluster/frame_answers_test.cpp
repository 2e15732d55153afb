// What is said about each kind of frame, by all who judge one, against frame_answers.txt: for all roles, stages, views and counts. The file
// was recorded before one table had these facts; a change of who may say what is a change of the file, and so can be read.
#include "actors/cluster/frame_rules.hpp"
#include "actors/cluster/frame_turns.hpp"
#include "actors/links/control_budget.hpp"
#include "actors/links/frame_check.hpp"
#include "messages/wire/codec.hpp"
#include "tests/actors/cluster/letters_of_stages.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

// A name of its own: several tests are compiled as one file.
namespace poseidon::frame_answers {
namespace {

constexpr seat_id leader{0}, member{1}, another{2};
constexpr std::array views{written_in::same_view, written_in::earlier_view, written_in::later_view};

template <std::size_t... I>
std::vector<frame_header> every_frame(std::index_sequence<I...>) {
  return {frame_header(std::in_place_index<I>)...};
}

std::string stages_of(const frame_header& h, frame_sender from, seat_id self) {
  const auto out = test::letters_of_stages([&](node_stage s) {
    return !refusal_of(h, from, {self, leader, s});
  });
  return out.empty() ? "-" : out;
}

/// y: it may be said, n: once too often. Five times, in the next view again, and on another link.
std::string turns_of(const frame_header& h) {
  std::string out;
  frame_turns turns;
  const auto say = [&] { out += turns.refusal_of(h, another) ? 'n' : 'y'; };
  for (int i = 0; i < 5; ++i) say();
  turns.next_view();
  out += ' ';
  for (int i = 0; i < 3; ++i) say();
  turns.forget(another);
  out += ' ';
  say();
  return out;
}

/// How many frames of this size a new link admits at once, counted up to 1500.
std::string budget_of(const frame_header& h, std::size_t bytes) {
  control_budget budget({});
  int n = 0;
  try {
    while (n < 1500) {
      budget.admit(h, bytes, {});
      ++n;
    }
  } catch (const bad_frame& e) {
    return std::to_string(n) + (e.field.starts_with("size") ? " by size" : "");
  }
  return "all";
}

std::string of_view(const frame_header& h) {
  const std::string out = std::string(is_of_a_view(h) ? " reader's" : "") +
                          (is_of_its_senders_view(h) ? " sender's" : "") +
                          (is_for_the_page(h) ? " page" : "");
  return out.empty() ? " any" : out;
}

/// FNV-1a of all that refusal_of and is_of_another_view answer, each sender to each reader in each stage of each view.
std::string sum_of_refusals(const frame_header& h) {
  std::uint64_t sum = 14695981039346656037u;
  const auto add = [&](const std::string& text) {
    for (const unsigned char c : text + '\n') sum = (sum ^ c) * 1099511628211u;
  };
  for (const auto seat : {leader, another, no_seat})
    for (const auto self : {leader, member, no_seat})
      for (std::size_t s = 0; s < names_of_stages.size(); ++s)
        for (const auto wrote : views)
          for (unsigned bits = 0; bits < 8; ++bits) {
            const frame_sender from{seat, (bits & 1) != 0, wrote, (bits & 2) != 0};
            const frame_listener to{self, leader, static_cast<node_stage>(s), (bits & 4) != 0};
            add(refusal_of(h, from, to).value_or("may"));
            add(is_of_another_view(h, from, to) ? "of another view" : "of this one");
          }
  frame_turns turns;
  for (int i = 0; i < 4; ++i) add(turns.refusal_of(h, another).value_or("may"));
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(sum));
  return text;
}

std::string answers_of(const frame_header& h, const std::string& which = "") {
  std::ostringstream out;
  out << kind_name(h) << which << ":" << (has_payload(h) ? " payload," : "")
      << (carries_nets(h) ? " 24 MiB," : "") << " view" << of_view(h) << ", turns " << turns_of(h)
      << ", budget " << budget_of(h, 100) << " / " << budget_of(h, 4u << 20) << "\n  "
      << "leader>member " << stages_of(h, {leader}, member) << "  member>leader "
      << stages_of(h, {another}, leader) << "  member>member " << stages_of(h, {another}, member)
      << "  newcomer>leader " << stages_of(h, {another, false}, leader) << "  newcomer>member "
      << stages_of(h, {another, false}, member) << "  texts " << sum_of_refusals(h) << "\n";
  return out.str();
}

std::string all_answers() {
  std::string out;
  for (const auto& h : every_frame(std::make_index_sequence<std::variant_size_v<frame_header>>{}))
    out += answers_of(h);
  return out + answers_of(frames::probe{0, true}, " (last)");
}

TEST_CASE("frame_answers: what each frame may do is what frame_answers.txt says") {
  std::ifstream file("tests/actors/cluster/frame_answers.txt");
  std::string line, recorded;
  while (std::getline(file, line))
    if (!line.starts_with("#")) recorded += line + "\n";
  const auto now = all_answers();
  std::istringstream want(recorded), got(now);
  for (std::string w, g; std::getline(want, w) && std::getline(got, g);) CHECK(g == w);
  CHECK(now == recorded);  // none is missing or new
}

}  // namespace
}  // namespace poseidon::frame_answers
