// Readers of events: those that listen, those that fall behind, and those that do something else.
#include "tests/apps/served.hpp"

#include <atomic>
#include <thread>
#include <utility>

using namespace poseidon;
using namespace poseidon::web;
using namespace poseidon::web::test;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t more_than_a_connection_keeps = 32'000'000;  // bytes

/// A first event that fills the connection, and one when the run has ended.
class ending_site : public site {
 public:
  std::atomic<bool> ended = false;

  answer get(const request&) override {
    return {{200, "text/event-stream", "", ""}, std::make_unique<ending_feed>(ended)};
  }

 private:
  class ending_feed : public feed {
   public:
    explicit ending_feed(const std::atomic<bool>& ended) : ended_(ended) {}
    std::string next() override {
      if (!std::exchange(has_begun_, true))
        return "data: first" + std::string(more_than_a_connection_keeps, 'x') + "\n\n";
      return ended_ ? "data: the run has ended\n\n" : "";
    }

   private:
    const std::atomic<bool>& ended_;
    bool has_begun_ = false;
  };
};

}  // namespace

TEST_CASE("server: a reader of events that keeps sending is sent away, and keeps nobody waiting") {
  server s(quick(), std::make_shared<small_site>());
  auto flood = ask(s, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  (void)read_until(*flood, "data: 0");
  const std::string bytes(100'000, 'x');
  bool sent_away = false;
  try {
    while (true) flood->write(std::as_bytes(std::span(bytes)));
  } catch (const socket_error&) {
    sent_away = true;
  }
  CHECK(sent_away);
  CHECK(answers(get(s, "/while"), 200));
}

TEST_CASE("server: who does not read is sent away when too much waits for it") {
  auto o = quick();
  o.most_unread_bytes = 1'000'000;
  server s(o, std::make_shared<small_site>(more_than_a_connection_keeps));
  auto deaf = ask(s, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(answers(get(s, "/while"), 200));
  std::size_t got = 0;
  try {
    got = read_until(*deaf).size();
  } catch (const socket_error&) {  // a reset is an end, too
  }
  CHECK(got < more_than_a_connection_keeps);
}

TEST_CASE("server: a stream is given what is new, and one that is not read holds nobody up") {
  server s(quick(), std::make_shared<small_site>(300'000));
  auto deaf = ask(s, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  auto listener = ask(s, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto heard = read_until(*listener, "data: 20x");
  CHECK(heard.find("text/event-stream") != std::string::npos);
  CHECK(heard.find("data: 19x") != std::string::npos);
  CHECK(answers(get(s, "/while"), 200));
  // The deaf one has been skipped, not queued for: what it gets when it listens is not all that there was.
  const auto late = read_until(*deaf, "data: 9x");
  CHECK(late.find("data: 8x") != std::string::npos);
}

TEST_CASE(
    "server: who has fallen behind gets the last event, and who reads nothing holds no end up") {
  for (const bool reads : {true, false}) {
    CAPTURE(reads);
    auto o = quick();
    o.goodbye_patience = reads ? deadline : milliseconds{30};
    const auto site = std::make_shared<ending_site>();
    auto s = std::make_unique<server>(o, site);
    auto reader = ask(*s, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    read_until(*reader, "data: first");
    site->ended = true;
    std::thread ends([&] { s.reset(); });
    if (reads) CHECK(read_until(*reader).ends_with("data: the run has ended\n\n"));
    ends.join();
  }
}
