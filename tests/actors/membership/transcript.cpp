#include "tests/actors/membership/transcript.hpp"

#include "tests/actors/membership/transcript_stages.hpp"

#include <memory>
#include <sstream>
#include <stdexcept>

namespace poseidon::transcript {

namespace {

bool is_number(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

std::unique_ptr<stage> stage_for(const event& first) {
  if (first.words.starts_with("lead")) return plan_stage();
  if (first.words.starts_with("are members")) return vote_stage();
  throw std::invalid_argument("a story begins with \"0 leads ...\" or \"0 1 2 are members ...\"");
}

}  // namespace

event event_of(const std::string& line) {
  event e{line, {}, {}, {}};
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (!is_number(word))
      e.words += (e.words.empty() ? "" : " ") + word;
    else if (e.words.empty())
      e.seats.push_back(seat_id{static_cast<std::uint32_t>(std::stoul(word))});
    else
      e.numbers.push_back(std::stoull(word));
  }
  return e;
}

std::string seats_text(const std::vector<seat_id>& seats) {
  std::string out;
  for (const auto s : seats) out += (out.empty() ? "" : " ") + std::to_string(value(s));
  return out;
}

std::string played(const std::string& text) {
  std::string out;
  std::unique_ptr<stage> on;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ")) continue;  // an answer
    out += line + "\n";
    if (!line.starts_with("> ")) continue;
    const auto e = event_of(line.substr(2));
    try {
      if (!on) on = stage_for(e);
      for (const auto& answer : on->play(e)) out += "  " + answer + "\n";
    } catch (const std::invalid_argument& why) {
      throw std::invalid_argument("\"" + line + "\": " + why.what());
    }
  }
  return out;
}

}  // namespace poseidon::transcript
