#include "actors/core/actor.hpp"
#include "apps/web/live_site.hpp"
#include "apps/web/view_json.hpp"
#include "tests/apps/served.hpp"

#include <caf/actor_system_config.hpp>
#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <atomic>
#include <condition_variable>
#include <fcntl.h>
#include <future>
#include <mutex>
#include <sys/socket.h>

using namespace poseidon;
using namespace poseidon::web;
using namespace poseidon::web::test;
using std::chrono::milliseconds;

struct block_here {
  std::shared_ptr<std::promise<void>> blocked;
  std::shared_future<void> until;
};
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(block_here)

namespace {

/// Counts its answers; the first waits for the test.
class counting_site : public site {
 public:
  answer get(const request& r) override {
    if (count_++ == 0) {
      begun.set_value();
      goes_on.get_future().wait();
    }
    if (r.path == "/one") number_of_one = count_;
    return {{200, "text/plain", "answer " + std::to_string(count_), ""}, {}};
  }
  std::promise<void> begun, goes_on;
  std::atomic<int> number_of_one = 0;

 private:
  int count_ = 0;
};

/// Answers /late when the test allows it, and everything else immediately.
class late_site : public site {
 public:
  answer get(const request& r) override {
    answer a;
    if (r.path == "/late") {
      const std::lock_guard lock(mutex_);
      a.later = asked_.emplace_back().get_future();
      changed_.notify_all();
    } else {
      a.head = {200, "text/plain", "you are at " + r.path, ""};
    }
    return a;
  }
  std::promise<response> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !asked_.empty(); });
    auto first = std::move(asked_.front());
    asked_.erase(asked_.begin());
    return first;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::promise<response>> asked_;
};

class blocked_actor : public actor<blocked_actor> {
 public:
  static constexpr const char* type_name = "blocked";
  using accepts = messages<block_here>;
  using sends = messages<>;
  explicit blocked_actor(actor_context context) : actor(context) {}
  void on(const block_here& m) {
    m.blocked->set_value();
    m.until.wait();
    quit();
  }
};

}  // namespace

TEST_CASE("server: answers one request after the other on a connection") {
  server s(quick(), std::make_shared<small_site>());
  auto socket = ask(
      s, "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\nGET /b HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto got = read_until(*socket, "at /b");
  CHECK(got.find("you are at /a") < got.find("you are at /b"));
}

TEST_CASE("server: an answer that takes long keeps nobody else waiting, and comes in its turn") {
  auto o = quick();
  o.patience = milliseconds{30};  // the server's patience with a client, not the client's
  const auto shown = std::make_shared<late_site>();
  server s(o, shown);
  auto socket = ask(s, "GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n");
  auto promise = shown->next();
  const std::string then = "GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n";
  socket->write(std::as_bytes(std::span(then)));
  // A silent client is disconnected meanwhile, so more than the patience has passed.
  CHECK(read_until(*connect_to(s.address(), deadline)).empty());
  CHECK(answers(get(s, "/a"), 200));
  promise.set_value({200, "text/plain", "late, but here", ""});
  const auto got = read_until(*socket, "at /b");
  CHECK(got.find("late, but here") < got.find("you are at /b"));
  auto gone = ask(s, "GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n");
  auto unheard = shown->next();
  gone.reset();
  CHECK(answers(get(s, "/a"), 200));
  unheard.set_value({});  // the client has left
}

TEST_CASE("server: refuses what is not to be answered, in words") {
  server s(quick(), std::make_shared<small_site>());
  CHECK(answers(get(s, "/", "", "evil.example"), 421));
  auto post = ask(s, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nabcd");
  const auto refusal = read_until(*post);
  CHECK(answers(refusal, 405));
  CHECK(refusal.find("Allow: GET\r\n") != std::string::npos);
  CHECK(answers(get(s, "/", "X: " + std::string(9000, 'x') + "\r\n"), 431));
  auto endless = ask(s, "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(20000, 'x'));
  CHECK(answers(read_until(*endless), 431));
  CHECK(answers(get(s, "/still/there"), 200));
}

TEST_CASE("server: a connection too many is told so, and one that ends makes room") {
  auto o = quick();
  o.most_connections = 3;
  server s(o, std::make_shared<small_site>());
  std::vector<std::shared_ptr<tcp_socket>> idle;
  for (int i = 0; i < 3; ++i) {
    idle.push_back(ask(s, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    (void)read_until(*idle.back(), "at /x");  // it is connected now, and stays
  }
  auto one_more = connect_to(s.address(), deadline);
  CHECK(answers(read_until(*one_more), 503));
  idle.clear();
  // That they are gone is seen when poll says so, which may be after the next connection.
  while (!answers(get(s, "/"), 200)) {
  }
}

TEST_CASE("server: one address cannot take all connections") {
  auto o = quick();
  o.most_per_address = 2;
  server s(o, std::make_shared<small_site>());
  std::vector<std::shared_ptr<tcp_socket>> idle;
  for (int i = 0; i < 2; ++i) {
    idle.push_back(ask(s, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    (void)read_until(*idle.back(), "at /x");
  }
  const auto got = read_until(*connect_to(s.address(), deadline));
  CHECK(answers(got, 503));
  CHECK(got.find("too many connections from 127.0.0.1, at most 2 are allowed") !=
        std::string::npos);
}

TEST_CASE("server: an address that holds hundreds of connections keeps no other address out") {
  auto o = quick();
  o.most_connections = 6;
  o.most_per_address = 3;
  server s(o, std::make_shared<small_site>());
  const auto from = [&](const char* address) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in here{}, there{};
    here.sin_family = there.sin_family = AF_INET;
    ::inet_pton(AF_INET, address, &here.sin_addr);
    ::inet_pton(AF_INET, "127.0.0.1", &there.sin_addr);
    there.sin_port = htons(s.address().port);
    REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&here), sizeof here) == 0);
    REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&there), sizeof there) == 0);
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    return std::make_shared<tcp_socket>(fd, "the page");
  };
  std::vector<std::shared_ptr<tcp_socket>> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(from("127.0.0.2"));
  // It stands behind all of them.
  const std::string request = "GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  for (int i = 0; i < 3; ++i) {
    const auto reader = from("127.0.0.3");
    reader->write(std::as_bytes(std::span(request)));
    CHECK(answers(read_until(*reader), 200));
  }
}

TEST_CASE("server: who asks for much at once has one answer in each turn, and others theirs") {
  const auto shown = std::make_shared<counting_site>();
  server s(quick(), shown);
  std::string many;
  for (int i = 0; i < 50; ++i) many += "GET /many HTTP/1.1\r\nHost: localhost\r\n\r\n";
  auto greedy = ask(s, many);
  shown->begun.get_future().wait();  // the first of them is being answered
  auto modest = ask(s, "GET /one HTTP/1.1\r\nHost: localhost\r\n\r\n");
  shown->goes_on.set_value();
  (void)read_until(*modest, "answer ");
  (void)read_until(*greedy, "answer 51");
  CHECK(shown->number_of_one <= 5);
}

TEST_CASE("server: who says nothing is sent away, who speaks slowly as well") {
  auto o = quick();
  o.patience = milliseconds{30};
  server s(o, std::make_shared<small_site>());
  auto silent = connect_to(s.address(), deadline);
  CHECK(read_until(*silent).empty());
  auto slow = ask(s, "GET / HT");
  CHECK(read_until(*slow).empty());
}

TEST_CASE("server: an address that cannot be had is the user's to read") {
  server s(quick(), std::make_shared<small_site>());
  auto o = quick();
  o.at = s.address();
  CHECK_THROWS_WITH_AS(server(o, std::make_shared<small_site>()),
                       doctest::Contains("the page cannot be served at 127.0.0.1:"),
                       std::invalid_argument);
}

TEST_CASE("live_site: answers while every thread of the actor system is blocked") {
  const auto edges = std::make_shared<edge_book>();
  const auto trace = std::make_shared<trace_log>(false, true);
  const auto view =
      std::make_shared<cluster_view>(edges, trace, std::make_shared<run_history>(nullptr, 1));
  caf::actor_system_config config;
  config.set("scheduler.max-threads", std::size_t{2});
  std::promise<void> end;
  const auto until = end.get_future().share();
  caf::actor_system system(config);
  std::vector<handle<blocked_actor>> blocked;
  for (int i = 0; i < 4; ++i)
    blocked.push_back(
        spawn<blocked_actor>(system, *edges, thread_kind::shared, "blocked " + std::to_string(i)));
  std::vector<std::future<void>> entered;
  for (auto& b : blocked) {
    auto promise = std::make_shared<std::promise<void>>();
    entered.push_back(promise->get_future());
    tell_from_outside(b, block_here{promise, until});
    if (entered.size() <= 2) entered.back().wait();  // both workers hang now
  }
  const auto page = serve_live({"127.0.0.1", 0}, "", view);
  CHECK(get(*page, "/healthz").find("\"ok\":true") != std::string::npos);
  CHECK(get(*page, "/api/graph").find("\"name\":\"blocked 3\"") != std::string::npos);
  CHECK(answers(get(*page, "/metrics"), 200));
  end.set_value();
}

TEST_CASE("live_site: with a token nobody looks without it") {
  const auto view = std::make_shared<cluster_view>(std::make_shared<edge_book>(),
                                                   std::make_shared<trace_log>(false),
                                                   std::make_shared<run_history>(nullptr, 1));
  const auto page = serve_live({"127.0.0.1", 0}, "secret", view);
  for (const auto* path : {"/", "/events", "/metrics", "/api/graph", "/healthz", "/?token=other"})
    CHECK_MESSAGE(answers(get(*page, path), 401), path);
  CHECK(answers(get(*page, "/", "Cookie: poseidon=wrong\r\n"), 401));
  const auto let_in = get(*page, "/?token=secret");
  CHECK(answers(let_in, 303));
  CHECK(let_in.find("Set-Cookie: poseidon=secret; HttpOnly; SameSite=Strict") != std::string::npos);
  CHECK(answers(get(*page, "/healthz", "Cookie: a=b; poseidon=secret\r\n"), 200));
  CHECK(answers(get(*page, "/metrics", "Authorization: Bearer secret\r\n"), 200));
}

TEST_CASE("live_site: the page and its parts are in the program") {
  const auto view = std::make_shared<cluster_view>(std::make_shared<edge_book>(),
                                                   std::make_shared<trace_log>(false),
                                                   std::make_shared<run_history>(nullptr, 1));
  const auto page = serve_live({"127.0.0.1", 0}, "", view);
  CHECK(get(*page, "/").find("<title>poseidon</title>") != std::string::npos);
  CHECK(get(*page, "/app.js").find("Content-Type: text/javascript") != std::string::npos);
  CHECK(get(*page, "/style.css").find("Content-Type: text/css") != std::string::npos);
  CHECK(answers(get(*page, "/nothing.js"), 404));
  CHECK(answers(get(*page, "/../etc/passwd"), 404));
}
