// Ctrl-C in each moment of a process's life: before there is a node, while one trains, and between one node and the next.
#include "apps/node/signal_target.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <vector>

using namespace poseidon;
using app::signal_effect;

TEST_CASE("signal_target: the end that was asked for before there was a node reaches the node") {
  app::signal_target target;
  target.take(SIGTERM, signal_effect::stop);
  CHECK(target.end_signal() == SIGTERM);
  std::vector<interrupted> heard;
  target.hear([&](interrupted what) { heard.push_back(what); });
  REQUIRE(heard.size() == 1);
  CHECK(heard[0].signal == SIGTERM);
  CHECK(!heard[0].snapshot);
}

TEST_CASE(
    "signal_target: what comes between the end of a node and the next one reaches the next one") {
  app::signal_target target;
  std::vector<interrupted> first, second;
  target.hear([&](interrupted what) { first.push_back(what); });
  target.take(SIGHUP, signal_effect::snapshot);
  REQUIRE(first.size() == 1);
  CHECK(first[0].snapshot);
  // The first node has ended, and does not hear it any more.
  target.take(SIGINT, signal_effect::stop);
  target.hear([&](interrupted what) { second.push_back(what); });
  REQUIRE(second.size() == 1);
  CHECK(second[0].signal == SIGINT);
}

TEST_CASE("signal_target: a snapshot that nobody could write is not written later") {
  app::signal_target target;
  target.take(SIGHUP, signal_effect::snapshot);
  std::vector<interrupted> heard;
  target.hear([&](interrupted what) { heard.push_back(what); });
  CHECK(heard.empty());
  target.take(SIGINT, signal_effect::none);
  CHECK(heard.empty());
  CHECK(target.end_signal() == 0);
}
