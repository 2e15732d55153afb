// tests/actors/membership/transcript_text.hpp - what members say and do, in the words of the stories.
#pragma once
#include "actors/membership/view_change.hpp"
#include "messages/overloaded.hpp"
#include "tests/actors/membership/transcript.hpp"

#include <string>
#include <variant>

namespace poseidon::transcript {

inline std::string words_of(const frames::next_view& n) {
  return "view " + std::to_string(n.epoch) + " of " + seats_text(voters_of(n)) + " from version " +
         std::to_string(value(n.first_clock));
}
inline std::string words_of(const ballot& b) {
  return std::to_string(b.round) + "." + std::to_string(value(b.seat));
}

inline std::string words_of(const frame_header& f) {
  const auto refused = [](const auto& m) {
    return "refused, " + words_of(m.promised) + " is promised";
  };
  return std::visit(
      overloaded{
          [](const frames::next_view& n) { return "chosen: " + words_of(n); },
          [](const frames::view_prepare& p) { return "prepare " + words_of(p.number); },
          [&](const frames::view_promise& p) {
            if (p.promised > p.number) return refused(p);
            return "promise " + words_of(p.number) + ", has " +
                   (p.whole ? "version " + std::to_string(value(p.version)) : "no version") +
                   ", hears " + seats_text(p.hears) +
                   (p.accepted.round > 0 ? ", has accepted " + words_of(p.value) : "");
          },
          [](const frames::view_accept& a) {
            return "accept " + words_of(a.number) + ": " + words_of(a.value);
          },
          [&](const frames::view_accepted& a) {
            return a.promised > a.number ? refused(a) : "accepted " + words_of(a.number);
          },
          [](const auto&) { return std::string("a frame of no ballot"); },
      },
      f);
}

inline const char* words_of(obstacle why) {
  for (const auto& r : membership_rules())
    if (r.why == why) return r.says.data();
  return "";
}

inline const char* words_of(view_action::end_run::cause of) {
  using cause = view_action::end_run::cause;
  switch (of) {
    case cause::left_out:
      return "the others go on without it";
    case cause::newcomers_alone:
      return "nobody is left that had all of what the view begins with";
    case cause::version_is_gone:
      return "it has not got that version";
    case cause::state_is_gone:
      return "solver state is gone";
    case cause::values_never_came:
      return "nobody can give it the values that it needs";
    case cause::told_to_end:
      return "its user wants it to";
  }
  return "";
}

}  // namespace poseidon::transcript
