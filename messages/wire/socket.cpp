#include "messages/wire/socket.hpp"

#include "messages/wire/gathered.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace poseidon {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How much may lie in the kernel unsent: little, because priorities cannot reorder it. An urgent frame waits for it
// as well as for the piece being written.
constexpr int unsent_bytes = 512 << 10;

struct address_list {
  addrinfo* first = nullptr;
  address_list() = default;
  address_list(const address_list&) = delete;
  address_list& operator=(const address_list&) = delete;
  ~address_list() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
};

struct owned_descriptor {
  int fd = -1;
  explicit owned_descriptor(int fd) : fd(fd) {}
  owned_descriptor(const owned_descriptor&) = delete;
  owned_descriptor& operator=(const owned_descriptor&) = delete;
  ~owned_descriptor() {
    if (fd >= 0) ::close(fd);
  }
  int release() { return std::exchange(fd, -1); }
};

std::string cause(int error) {
  return std::strerror(error);
}

void resolve(const host_port& a, int flags, address_list& out, const char* what) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  const auto port = std::to_string(a.port);
  const bool any = a.host.empty() || a.host == "*";
  const int rc = ::getaddrinfo(any ? nullptr : a.host.c_str(), port.c_str(), &hints, &out.first);
  if (rc == 0) return;
  throw socket_error(std::string("cannot ") + what + " " + to_string(a) + ": the host \"" + a.host +
                         "\" is unknown (" + ::gai_strerror(rc) +
                         "). Check the name, or use a numeric address such as 10.0.0.7.",
                     EADDRNOTAVAIL);
}

std::string numeric(const sockaddr* a, socklen_t size) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getnameinfo(a, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
    return "unknown";
  std::string h = host;
  if (h.starts_with("::ffff:")) h.erase(0, 7);  // an IPv4 peer on a socket that takes both
  return to_string(host_port{h, static_cast<std::uint16_t>(std::atoi(port))});
}

timeval timeval_of(milliseconds t) {
  return {t.count() / 1000, (t.count() % 1000) * 1000};
}

/// `result` of a call that has to succeed for the limits of a connection to hold.
void require(int result, const char* what, const std::string& peer) {
  if (result == 0) return;
  const int error = errno;
  throw socket_error(std::string("cannot ") + what + " " + peer + ": " + cause(error), error);
}

void tune(int fd, const std::string& peer) {
  const int one = 1;
  const int off = 0;
  const auto patience = timeval_of(tcp_socket::write_patience);
  require(::ioctl(fd, FIONBIO, &off), "make reads and writes block on the connection to", peer);
  require(::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience),
          "limit how long a write waits on the connection to", peer);
  // Without these two it works as well, only later.
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes, sizeof unsent_bytes);
}

milliseconds until(clock::time_point deadline) {
  return std::max(milliseconds{0}, std::chrono::ceil<milliseconds>(deadline - clock::now()));
}

// Connects within the deadline; returns errno, 0 for success.
int connect_one(int fd, const addrinfo& to, clock::time_point deadline, const wake_up* stop) {
  if (::connect(fd, to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (const int rc = wait_for(fd, POLLOUT, deadline, stop); rc != 0) return rc;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

std::string connect_advice(int error) {
  switch (error) {
    case ECONNREFUSED:
      return "no program listens there (connection refused). Start the first node with --listen, "
             "or "
             "check the "
             "port.";
    case ETIMEDOUT:
      return "no answer in time. The machine may be down, or a firewall drops the packets.";
    case ECANCELED:
      return "this node is stopping.";
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "no route to it (" + cause(error) + "). Check the address and the network.";
    default:
      return cause(error) + ".";
  }
}

std::string listen_advice(int error, const host_port& at) {
  switch (error) {
    case EADDRINUSE:
      return "port " + std::to_string(at.port) +
             " is in use by another process. Stop that one, or choose another port.";
    case EACCES:
      return "not permitted. Ports below 1024 need privileges; choose a higher one.";
    case EADDRNOTAVAIL:
      return "no interface of this machine has that address. Use one of its own, or 0.0.0.0 for "
             "all.";
    default:
      return cause(error) + ".";
  }
}

}  // namespace

// ---- a connection

tcp_socket::tcp_socket(int fd, std::string peer) : fd_(fd), peer_(std::move(peer)) {
  owned_descriptor owner(fd);
  tune(fd_, peer_);
  owner.release();
}

tcp_socket::~tcp_socket() {
  ::close(fd_);
}

void tcp_socket::write(std::span<iovec> parts) {
  while (!parts.empty()) parts = write_some(parts);
}

std::span<iovec> tcp_socket::write_some(std::span<iovec> parts) {
  if (tls_) return write_tls(parts);
  parts = without_first(parts, 0);
  while (!parts.empty()) {
    msghdr m{};
    m.msg_iov = parts.data();
    m.msg_iovlen = parts.size();
    const auto n = ::sendmsg(fd_, &m, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      throw socket_error("cannot send to " + peer_ + ": " + cause(errno), errno);
    }
    parts = without_first(parts, static_cast<std::size_t>(n));
  }
  return parts;
}

void tcp_socket::write(std::span<const std::byte> bytes) {
  iovec one{const_cast<std::byte*>(bytes.data()), bytes.size()};
  write(std::span(&one, 1));
}

std::optional<std::size_t> tcp_socket::read_some(std::span<iovec> parts, milliseconds limit,
                                                 std::size_t surely) {
  limit = std::max(limit, milliseconds{1});  // 0 would be no limit
  if (tls_) return read_some_tls(parts, limit, surely);
  // The kernel remembers it: one call per read instead of a poll before each.
  if (limit != read_limit_) {
    const auto t = timeval_of(limit);
    require(::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t),
            "limit how long a read waits on the connection to", peer_);
    read_limit_ = limit;
  }
  const auto read = [&](int flags) {
    for (;;) {
      msghdr m{};
      m.msg_iov = parts.data();
      m.msg_iovlen = parts.size();
      const auto n = ::recvmsg(fd_, &m, flags);
      if (n >= 0 || errno != EINTR) return n;
    }
  };
  const bool much = surely >= worth_waiting_for;
  auto n = much ? read(MSG_DONTWAIT) : -1;
  if (n < 0 && (!much || errno == EAGAIN || errno == EWOULDBLOCK)) {
    wake_for(much ? std::min(surely, inflow_.worth_a_wake()) : 1);
    // poll, not the read itself, waits for that number: a read would take what has arrived and then sleep until the
    // same number has come again, which is more than the peer has to send.
    if (much) (void)wait_for(fd_, POLLIN, clock::now() + limit, nullptr);
    n = read(much ? MSG_DONTWAIT : 0);
  }
  if (n >= 0) {
    inflow_.add(static_cast<std::size_t>(n), clock::now());
    return static_cast<std::size_t>(n);
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
  throw socket_error("cannot read from " + peer_ + ": " + cause(errno), errno);
}

void tcp_socket::wake_for(std::size_t bytes) {
  const int wakes_for = static_cast<int>(bytes);
  if (wakes_for == wakes_for_) return;
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVLOWAT, &wakes_for, sizeof wakes_for);
  wakes_for_ = wakes_for;
}

void tcp_socket::inflow::add(std::size_t bytes, clock::time_point now) {
  bytes_ += bytes;
  if (now - since_ < window) return;
  rate_ = static_cast<double>(bytes_) / std::chrono::duration<double>(now - since_).count();
  since_ = now;
  bytes_ = 0;
}

std::size_t tcp_socket::inflow::worth_a_wake() const {
  constexpr double patience_s = 100e-6;
  return std::clamp(static_cast<std::size_t>(rate_ * patience_s), worth_waiting_for,
                    most_waited_for);
}

std::optional<std::size_t> tcp_socket::read_exactly(std::span<std::byte> bytes,
                                                    clock::time_point deadline,
                                                    const wake_up* stop) {
  std::size_t have = 0;
  while (have < bytes.size()) {
    if (!tls_ && stop != nullptr && wait_for(fd_, POLLIN, deadline, stop) == ECANCELED) stopped();
    const auto left = until(deadline);
    if (left.count() == 0) return std::nullopt;
    iovec one{bytes.data() + have, bytes.size() - have};
    const std::span<iovec> part(&one, 1);
    const auto n = tls_ ? read_tls(part, deadline, 1, stop) : read_some(part, left);
    if (!n) return std::nullopt;
    if (*n == 0) break;
    have += *n;
  }
  return have;
}

host_port tcp_socket::local() const {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  require(::getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &size),
          "find this end's address of the connection to", peer_);
  return parse_host_port(numeric(reinterpret_cast<sockaddr*>(&name), size));
}

void tcp_socket::shutdown_reading() noexcept {
  ::shutdown(fd_, SHUT_RD);
}
void tcp_socket::shutdown_writing() noexcept {
  if (tls_) tls_->end_writing();
  ::shutdown(fd_, SHUT_WR);
}
void tcp_socket::shutdown() noexcept {
  ::shutdown(fd_, SHUT_RDWR);
}

std::shared_ptr<tcp_socket> connect_to(const host_port& to, milliseconds limit,
                                       const wake_up* stop) {
  const auto deadline = clock::now() + limit;
  address_list found;
  resolve(to, 0, found, "connect to");
  int error = EHOSTUNREACH;
  for (const auto* a = found.first; a != nullptr; a = a->ai_next) {
    owned_descriptor s(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (s.fd < 0) {
      error = errno;
      continue;
    }
    error = connect_one(s.fd, *a, deadline, stop);
    if (error == ECANCELED) break;
    if (error != 0) continue;
    return std::make_shared<tcp_socket>(s.release(), numeric(a->ai_addr, a->ai_addrlen));
  }
  throw socket_error("cannot connect to " + to_string(to) + ": " + connect_advice(error), error);
}

// ---- listening

tcp_listener::tcp_listener(const host_port& at) {
  address_list found;
  resolve(at, AI_PASSIVE, found, "listen on");
  // "Every address": one socket for IPv6 takes IPv4 as well, where the machine has IPv6 at all. A
  // name that has both (localhost) means IPv4, because that is what people write on the other side.
  int error = EADDRNOTAVAIL;
  const bool any = at.host.empty() || at.host == "*";
  for (const int family : {any ? AF_INET6 : AF_INET, any ? AF_INET : AF_INET6}) {
    for (const auto* a = found.first; a != nullptr; a = a->ai_next) {
      if (a->ai_family != family) continue;
      owned_descriptor s(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (s.fd < 0) continue;
      const int one = 1;
      const int v6_only = any ? 0 : 1;
      ::setsockopt(s.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
      if (family == AF_INET6)
        ::setsockopt(s.fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
      if (::bind(s.fd, a->ai_addr, a->ai_addrlen) != 0 || ::listen(s.fd, 64) != 0) {
        if (error != EADDRINUSE) error = errno;
        continue;
      }
      sockaddr_storage name{};
      socklen_t size = sizeof name;
      ::getsockname(s.fd, reinterpret_cast<sockaddr*>(&name), &size);
      port_ = family == AF_INET6 ? ntohs(reinterpret_cast<sockaddr_in6&>(name).sin6_port)
                                 : ntohs(reinterpret_cast<sockaddr_in&>(name).sin_port);
      bound_ = numeric(reinterpret_cast<sockaddr*>(&name), size);
      fd_ = s.release();
      return;
    }
  }
  throw socket_error("cannot listen on " + to_string(at) + ": " + listen_advice(error, at), error);
}

tcp_listener::~tcp_listener() {
  ::close(fd_);
}

void tcp_listener::wake() noexcept {
  wake_.set();
}

std::shared_ptr<tcp_socket> tcp_listener::accept(milliseconds limit) {
  pollfd p[2] = {{fd_, POLLIN, 0}, {wake_.descriptor(), POLLIN, 0}};
  if (::poll(p, 2, static_cast<int>(limit.count())) <= 0) return nullptr;
  if (p[1].revents != 0) wake_.clear();
  if (p[0].revents == 0) return nullptr;
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  const int fd = ::accept4(fd_, reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC);
  if (fd >= 0)
    return std::make_shared<tcp_socket>(fd, numeric(reinterpret_cast<sockaddr*>(&from), size));
  // A peer that is gone already is no reason to stop listening.
  if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR || errno == EPROTO) return nullptr;
  throw socket_error("cannot accept connections: " + cause(errno), errno);
}

}  // namespace poseidon
