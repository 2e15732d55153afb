// tests/actors/membership/transcript.hpp
//
// Stories of membership as plain text (transcripts/*.txt): what happens, a line each that begins with ">", and below it, indented, what
// the product's own objects answer. A line that begins with "#" is for the reader. The test plays the story and compares each answer.
#pragma once
#include "messages/ids.hpp"

#include <string>
#include <vector>

namespace poseidon::transcript {

/// An event in words, and the seats that stand first in it: "0 2 have drained 43" has the seats 0 and 2.
struct event {
  std::string text;
  std::vector<seat_id> seats;
  std::string words;                   ///< without seats and numbers: "have drained"
  std::vector<std::uint64_t> numbers;  ///< those that follow the first word: 43
};
/// Errors   std::invalid_argument: a seat that is no number.
[[nodiscard]] event event_of(const std::string& line);

using answers = std::vector<std::string>;  ///< a line each

/// One who plays: the leader's plan of the views, or the members of a view that vote on the next one.
class stage {
 public:
  virtual ~stage() = default;
  /// Errors   std::invalid_argument: there is no such event.
  virtual answers play(const event& e) = 0;
};

[[nodiscard]] std::string seats_text(const std::vector<seat_id>& seats);

/// The whole text with the answers that the product gives to its events. Which stage plays, its first event says.
/// Errors   std::invalid_argument, with the line.
[[nodiscard]] std::string played(const std::string& text);

}  // namespace poseidon::transcript
