#include "apps/terminal/run_lines.hpp"

#include "apps/terminal/figures.hpp"

#include <algorithm>

namespace poseidon::app {

namespace {

constexpr std::size_t least_bar = 8, widest_bar = 60, widest_name = 24;
constexpr std::size_t widest_left = 11, widest_tests = 14, least_for_tests = 64;

styled_line first_line(const run_state& s, std::size_t columns) {
  const auto share = s.total == 0 ? 0 : static_cast<double>(s.done) / static_cast<double>(s.total);
  // Rounded down, so that 100 % means the end.
  const auto tenths = s.total == 0 ? 0 : s.done * 1000 / s.total;
  // As wide as at the end of the run, so that the text behind it does not move.
  const auto total = std::to_string(s.total), done = std::to_string(s.done);
  const auto percent = std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "%";
  const auto padded = [](const std::string& text, std::size_t columns) {
    return std::string(columns > text.size() ? columns - text.size() : 0, ' ') + text;
  };
  auto begin = " iter " + padded(done, total.size()) + "/" + total;
  styled end{"", style::plain};
  if (s.waiting_s)
    end = {"waiting " + duration(*s.waiting_s), style::warning};
  else if (s.left_s)
    end = {"left " + duration(*s.left_s), style::plain};
  if (columns >= columns_of(begin) + 7 + 2 + columns_of(end.text)) begin += padded(percent, 7);
  // Room for long times left, so that the bar keeps its width.
  auto room = std::max<std::size_t>(columns_of(end.text), widest_left);
  if (!s.waiting_s && s.left_s && s.tests_left_s && columns >= least_for_tests) {
    end.text += ", tests " + duration(*s.tests_left_s);
    room = std::max<std::size_t>(columns_of(end.text), widest_left + widest_tests);
  }
  styled_line line = {{begin + "  ", style::plain}};
  const auto used = columns_of(begin) + 4 + room;
  if (columns >= used + least_bar) {
    for (auto& part : bar(share, std::min(columns - used, widest_bar)))
      line.push_back(std::move(part));
    line.push_back({"  ", style::plain});
  }
  line.push_back(std::move(end));
  return line;
}

styled_line second_line(const run_state& s, std::size_t columns) {
  std::vector<std::string> facts;
  if (s.loss) facts.push_back("loss " + number(*s.loss));
  for (const auto& [name, value] : s.outputs)
    facts.push_back(shortened(printable(name), widest_name) + " " + number(value));
  if (s.images_s) facts.push_back(rate(*s.images_s) + " images/s");
  if (s.net) facts.push_back("net " + byte_rates(s.net->out_per_s, s.net->in_per_s));
  if (s.hidden) facts.push_back("hidden " + number(100 * *s.hidden, "%.0f") + "%");
  std::string line;
  for (const auto& fact : facts) {
    const auto before = line.empty() ? std::string(" ") : line + "  ";
    if (columns_of(before) + columns_of(fact) <= columns) line = before + fact;
  }
  return {{line, style::plain}};
}

}  // namespace

std::vector<styled_line> run_lines(const run_state& s, std::size_t columns) {
  return {first_line(s, columns), second_line(s, columns)};
}

}  // namespace poseidon::app
