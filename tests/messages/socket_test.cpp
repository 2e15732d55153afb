#include "messages/wire/socket.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace poseidon {
namespace {

using namespace std::chrono_literals;

std::string error_of(auto&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no error";
}

std::pair<std::shared_ptr<tcp_socket>, std::shared_ptr<tcp_socket>> connected() {
  tcp_listener l({"127.0.0.1", 0});
  auto a = connect_to({"127.0.0.1", l.port()}, 60s);
  auto b = l.accept(60s);
  REQUIRE(b);
  return {a, b};
}

TEST_CASE("socket: addresses are read as people write them, and refused with an example") {
  CHECK(parse_host_port("10.0.0.7:7600").host == "10.0.0.7");
  CHECK(parse_host_port("10.0.0.7:7600").port == 7600);
  CHECK(parse_host_port("head:1").host == "head");
  CHECK(parse_host_port("[fe80::1]:7600").host == "fe80::1");
  CHECK(parse_host_port(":7600").host.empty());
  CHECK(to_string(host_port{"fe80::1", 7600}) == "[fe80::1]:7600");
  CHECK(to_string(host_port{"head", 7600}) == "head:7600");
  for (const char* bad :
       {"", "head", "head:", "head:x", "head:70000", "fe80::1:7600", "[fe80::1:7600", "[]:1"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS((void)parse_host_port(bad), std::invalid_argument);
  }
  CHECK(error_of([] { (void)parse_host_port("head"); }) ==
        "address \"head\": the port is missing. Write host:port, for example 10.0.0.7:7600, "
        "head:7600 or "
        "[fe80::1]:7600.");
}

TEST_CASE("socket: loopback is what only this machine can reach") {
  CHECK(is_loopback({"127.0.0.1", 1}));
  CHECK(is_loopback({"127.8.8.8", 1}));
  CHECK(is_loopback({"::1", 1}));
  CHECK(is_loopback({"localhost", 1}));
  for (const char* open : {"", "0.0.0.0", "::", "10.0.0.7", "*", "head"})
    CHECK_FALSE(is_loopback({open, 1}));
  CHECK(is_any_address({"", 1}));
  CHECK(is_any_address({"0.0.0.0", 1}));
  CHECK_FALSE(is_any_address({"127.0.0.1", 1}));
}

TEST_CASE("socket: a port in use, a refusing port and an unknown host are explained") {
  tcp_listener l({"127.0.0.1", 0});
  const auto port = std::to_string(l.port());
  CHECK(error_of([&] {
          tcp_listener again({"127.0.0.1", l.port()});
        }) == "cannot listen on 127.0.0.1:" + port + ": port " + port +
                  " is in use by another process. Stop that one, or choose another port.");
  CHECK(error_of([&] {
          tcp_listener other({"203.0.113.1", 0});
        }).find("no interface of this machine has that address") != std::string::npos);
  std::uint16_t closed = 0;
  {
    tcp_listener gone({"127.0.0.1", 0});
    closed = gone.port();
  }
  CHECK(error_of([&] {
          (void)connect_to({"127.0.0.1", closed}, 60s);
        }) == "cannot connect to 127.0.0.1:" + std::to_string(closed) +
                  ": no program listens there (connection refused). Start the first node with "
                  "--listen, or check the port.");
  CHECK(error_of([] {
          (void)connect_to({"no-such-host.invalid", 7600}, 60s);
        }).find("the host \"no-such-host.invalid\" is unknown") != std::string::npos);
}

TEST_CASE("socket: one listener for every address takes IPv4") {
  tcp_listener l({"", 0});
  auto a = connect_to({"127.0.0.1", l.port()}, 60s);
  auto b = l.accept(60s);
  REQUIRE(b);
  CHECK(b->peer().starts_with("127.0.0.1:"));
  CHECK(a->peer() == "127.0.0.1:" + std::to_string(l.port()));
}

TEST_CASE("socket: a gathered write of 8 MiB in odd parts arrives in order") {
  auto [a, b] = connected();
  std::vector<std::byte> data(8 << 20);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 31 >> 3);
  std::thread writer([&, a = a] {
    const std::size_t cut = 12'345;
    iovec parts[4] = {{data.data(), cut},
                      {nullptr, 0},
                      {data.data() + cut, 1},
                      {data.data() + cut + 1, data.size() - cut - 1}};
    a->write(std::span<iovec>(parts));
  });
  std::vector<std::byte> got(data.size());
  CHECK(b->read_exactly(got, std::chrono::steady_clock::now() + 60s) == data.size());
  writer.join();
  CHECK(got == data);
}

/// Waits until a thread of this process sleeps, or is gone.
void wait_until_asleep(const std::atomic<pid_t>& thread) {
  for (;; std::this_thread::yield()) {
    std::string stat;
    if (thread == 0) continue;
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    if (!std::getline(file, stat)) return;
    const auto name_end = stat.rfind(')');
    if (name_end != std::string::npos && stat.substr(name_end + 2, 1) == "S") return;
  }
}

TEST_CASE("socket: a piece whose second part comes while a reader sleeps for it is read at once") {
  auto [a, b] = connected();
  const std::vector<std::byte> first(60'000), second(20'000);
  std::atomic<pid_t> reading = 0;
  a->write(first);
  auto reader = std::async(std::launch::async, [&, b = b] {
    reading = ::gettid();
    std::vector<std::byte> piece(80'000);
    std::size_t have = 0;
    while (have < piece.size()) {
      iovec part{piece.data() + have, piece.size() - have};
      const auto n = b->read_some(std::span(&part, 1), 1h, piece.size() - have).value_or(0);
      if (n == 0) break;
      have += n;
    }
    return have;
  });
  wait_until_asleep(reading);  // with what was there in its hands
  a->write(second);
  CHECK(reader.wait_for(60s) == std::future_status::ready);
  b->shutdown();
  CHECK(reader.get() == first.size() + second.size());
}

TEST_CASE("socket: less than what a reader sleeps for is read when the limit has passed") {
  auto [a, b] = connected();
  std::vector<std::byte> piece(80'000);
  iovec part{piece.data(), piece.size()};
  std::atomic<pid_t> reading = 0;
  auto reader = std::async(std::launch::async, [&, b = b] {
    reading = ::gettid();
    return b->read_some(std::span(&part, 1), 300ms, piece.size()).value_or(0);
  });
  wait_until_asleep(reading);
  a->write(std::vector<std::byte>(10'000));  // less than it is woken for
  CHECK(reader.get() > 0);
}

TEST_CASE("socket: reading ends with nothing at the deadline and with 0 when the peer has closed") {
  auto [a, b] = connected();
  std::vector<std::byte> one(1);
  CHECK(b->read_exactly(one, std::chrono::steady_clock::now() + 1ms) == std::nullopt);
  iovec part{one.data(), 1};
  CHECK(b->read_some(std::span(&part, 1), 1ms) == std::nullopt);
  a->shutdown_writing();
  CHECK(b->read_exactly(one, std::chrono::steady_clock::now() + 60s) == 0u);
}

TEST_CASE("socket: shutdown from another thread ends a read and a write that were stuck") {
  auto [a, b] = connected();
  std::thread reader([b = b] {
    std::vector<std::byte> one(1);
    CHECK(b->read_exactly(one, std::chrono::steady_clock::now() + 60s) == 0u);
  });
  std::thread writer([b = b] {
    const std::vector<std::byte> much(64 << 20);
    CHECK_THROWS_AS(b->write(much), socket_error);
  });
  iovec part{};
  std::vector<std::byte> some(1 << 20);
  part = {some.data(), some.size()};
  CHECK(a->read_some(std::span(&part, 1), 60s).value() > 0);  // the writer is on its way
  b->shutdown();
  reader.join();
  writer.join();
}

TEST_CASE("socket: a write to a peer that takes nothing comes back with what is left of it") {
  auto [a, b] = connected();
  std::vector<std::byte> much(64 << 20);
  for (std::size_t i = 0; i < much.size(); ++i) much[i] = static_cast<std::byte>(i >> 12);
  iovec part{much.data(), much.size()};
  const auto left = a->write_some(std::span(&part, 1));
  REQUIRE(left.size() == 1);
  const auto written = much.size() - left[0].iov_len;
  CHECK(written > 0);
  CHECK(left[0].iov_base == much.data() + written);
  std::vector<std::byte> got(written);
  CHECK(b->read_exactly(got, std::chrono::steady_clock::now() + 60s) == written);
  CHECK(std::equal(got.begin(), got.end(), much.begin()));
}

TEST_CASE("socket: a wake-up ends a read that waits, and lasts until it is cleared") {
  auto [a, b] = connected();
  wake_up stop;
  std::vector<std::byte> one(1);
  std::thread waker([&] { stop.set(); });
  int error = 0;
  try {
    (void)b->read_exactly(one, std::chrono::steady_clock::now() + 60s, &stop);
  } catch (const socket_error& e) {
    error = e.error;
  }
  CHECK(error == ECANCELED);
  waker.join();
  CHECK(stop.wait(0ms));
  stop.clear();
  CHECK_FALSE(stop.wait(0ms));
}

TEST_CASE("socket: a limit that the system refuses to set is an error that names it and the peer") {
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  const auto [not_a_socket, its_other_end] = pipe_ends;
  const auto errors = [&](int descriptor) {
    return error_of([&] { tcp_socket s(descriptor, "10.0.0.7:7600"); });
  };
  CHECK(errors(-1) ==
        "cannot make reads and writes block on the connection to 10.0.0.7:7600: Bad file "
        "descriptor");
  CHECK(errors(::dup(not_a_socket)) ==
        "cannot limit how long a write waits on the connection to 10.0.0.7:7600: Socket operation "
        "on non-socket");
  auto [a, b] = connected();
  REQUIRE(::dup2(not_a_socket, b->descriptor()) == b->descriptor());
  std::byte one{};
  iovec part{&one, 1};
  CHECK(error_of([&, b = b] { (void)b->read_some(std::span(&part, 1), 1s); }) ==
        "cannot limit how long a read waits on the connection to " + b->peer() +
            ": Socket operation on non-socket");
  ::close(not_a_socket);
  ::close(its_other_end);
}

TEST_CASE("socket: wake ends a waiting accept without a connection") {
  tcp_listener l({"127.0.0.1", 0});
  std::thread waker([&] { l.wake(); });
  CHECK(l.accept(60s) == nullptr);
  waker.join();
}

}  // namespace

TEST_CASE("listen: a name that means this machine alone is said, with the address that is bound") {
  const auto why = why_unreachable("head:7600", "127.0.1.1:7600");
  CHECK(why.find("the name head means 127.0.1.1") != std::string::npos);
  CHECK(why.find("no other machine can reach this node") != std::string::npos);
  CHECK(why.find("0.0.0.0:7600") != std::string::npos);
  CHECK(why_unreachable("[fd00::1]:7600", "[::1]:7600") != "");
  for (const auto& [listens, bound] :
       {std::pair("head:7600", "10.0.0.7:7600"), std::pair("localhost:7600", "127.0.0.1:7600"),
        std::pair("127.0.0.1:7600", "127.0.0.1:7600"), std::pair("0.0.0.0:7600", "0.0.0.0:7600"),
        std::pair(":7600", "[::]:7600"), std::pair("head:7600", "")})
    CHECK(why_unreachable(listens, bound) == "");
  CHECK(numeric_note("head:7600", "127.0.1.1:7600") == " (127.0.1.1)");
  CHECK(numeric_note("head:7600", "10.0.0.7:7600") == " (10.0.0.7)");
  CHECK(numeric_note("10.0.0.7:7600", "10.0.0.7:7600") == "");
  CHECK(numeric_note(":7600", "[::]:7600") == "");
  CHECK(numeric_note("head:7600", "") == "");
  CHECK(tcp_listener({"localhost", 0}).bound().starts_with("127.0.0.1:"));
}

}  // namespace poseidon
