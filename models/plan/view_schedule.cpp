#include "models/plan/view_schedule.hpp"

#include "models/first_bytes.hpp"
#include "models/spec/spec_file.hpp"
#include "models/words.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace poseidon {

namespace {

constexpr std::size_t most_nodes = 4096;  // as --nodes
constexpr std::size_t most_bytes = 1'000'000;

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  std::string text(most_bytes + 1, ' ');
  if (!in || !(in.peek(), in) || std::filesystem::is_directory(file))
    throw spec_error("--views " + file + ": no file with anything in it can be read there.");
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  text = without_byte_order_mark(text);
  if (text.size() > most_bytes)
    throw spec_error("--views " + file + " has more than " + std::to_string(most_bytes) +
                     " bytes; a line for each view is expected.");
  return text;
}

std::optional<std::uint64_t> number(const std::string& word) {
  std::uint64_t n = 0;
  const auto* end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data(), end, n);
  return error == std::errc{} && stopped == end ? std::optional(n) : std::nullopt;
}

}  // namespace

view_schedule read_view_schedule(const std::string& file, std::uint64_t first_clock,
                                 std::size_t nodes) {
  std::istringstream in(text_of(file));
  view_schedule all;
  std::string text;
  for (int line = 1; std::getline(in, text); ++line) {
    std::istringstream words(text.substr(0, text.find('#')));
    std::string clock, members, more;
    if (!(words >> clock)) continue;
    words >> members >> more;
    const spec_position at{file, line};
    const auto c = number(clock), n = number(members);
    if (!c || !n || *n < 1 || *n > most_nodes || !more.empty())
      throw spec_error(at, "expected the number of an iteration and from 1 to " +
                               std::to_string(most_nodes) + " nodes; found \"" + text + "\".");
    if (!all.empty() && *c <= all.rbegin()->first)
      throw spec_error(at, "iteration " + clock + " comes after " +
                               std::to_string(all.rbegin()->first) + ", which is not less.");
    all[*c] = *n;
  }
  if (all.empty())
    throw spec_error("--views " + file + " has no line with an iteration and a number of nodes.");
  const auto next = all.upper_bound(first_clock);
  if (next != all.begin())
    if (const auto& now = *std::prev(next); now.second != nodes)
      throw spec_error("--views " + file + " has " + plural(now.second, "node") + " in iteration " +
                       std::to_string(first_clock) +
                       ", with which the run begins, and --nodes says " + std::to_string(nodes) +
                       ".");
  all.erase(all.begin(), next);
  return all;
}

}  // namespace poseidon
