#include "apps/terminal/terminal.hpp"

#include "apps/terminal/json_event.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace poseidon::app;

namespace {
terminal_signs on_a_terminal() {
  terminal_signs s;
  s.out = s.err = terminal_signs::kind::terminal;
  s.term = "xterm-256color";
  return s;
}
}  // namespace

TEST_CASE("terminal: lines are drawn where a person sees them and nothing else is spoilt") {
  using kind = terminal_signs::kind;
  auto s = on_a_terminal();
  REQUIRE(live_terminal(s, false));
  CHECK(live_terminal(s, false)->fd == 1);
  CHECK_FALSE(live_terminal(s, true));  // events of programs on the same terminal
  s.out = kind::file;
  REQUIRE(live_terminal(s, false));
  CHECK(live_terminal(s, false)->fd == 2);
  CHECK(live_terminal(s, true)->fd == 2);
  s.out = kind::other;  // | tee log: tee writes to the same terminal
  CHECK_FALSE(live_terminal(s, false));
  s.out = kind::file;
  s.err = kind::file;
  CHECK_FALSE(live_terminal(s, false));
}

TEST_CASE("terminal: without TERM, or with a dumb one, nothing is drawn") {
  auto s = on_a_terminal();
  for (const auto& term : {std::optional<std::string>(), std::optional<std::string>(""),
                           std::optional<std::string>("dumb")}) {
    s.term = term;
    CHECK_FALSE(live_terminal(s, false));
  }
}

TEST_CASE("terminal: NO_COLOR and CLICOLOR=0 take the colour and leave the lines") {
  auto s = on_a_terminal();
  CHECK(live_terminal(s, false)->colour);
  s.no_color = "";  // not set, says no-color.org
  CHECK(live_terminal(s, false)->colour);
  s.no_color = "1";
  CHECK_FALSE(live_terminal(s, false)->colour);
  s.no_color.reset();
  s.clicolor = "0";
  CHECK_FALSE(live_terminal(s, false)->colour);
  s.clicolor = "1";
  CHECK(live_terminal(s, false)->colour);
}

TEST_CASE("json_event: one object on one line, whatever the texts are") {
  json_event inner;
  inner.number("loss", 0.5).number("accuracy", std::nan(""));
  json_event e("progress");
  e.count("clock", 12).object("outputs", inner).text("text", "a\n\"b\"\xff").null("hidden");
  e.texts("gpus", {"0", "1"});
  const auto line = e.line();
  CHECK(line.rfind("{\"event\":\"progress\",\"time\":\"20", 0) == 0);
  const std::string end =
      "Z\",\"clock\":12,\"outputs\":{\"loss\":0.5,\"accuracy\":null},"
      "\"text\":\"a\\u000a\\\"b\\\"\xef\xbf\xbd\",\"hidden\":null,\"gpus\":[\"0\",\"1\"]}";
  CHECK(line.ends_with(end));
  CHECK(line.find('\n') == std::string::npos);
}
