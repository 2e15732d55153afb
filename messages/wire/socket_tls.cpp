// messages/wire/socket_tls.cpp - the half of tcp_socket that goes through TLS, and what does not wait.
#include "messages/wire/socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

namespace poseidon {
namespace {

using clock = std::chrono::steady_clock;

}  // namespace

void tcp_socket::use_tls(const tls_context& context, tls_side side, std::uint64_t key_lasts) {
  tls_ = std::make_unique<tls_channel>(context, side, fd_, peer_, key_lasts);
}

void tcp_socket::drop_tls() noexcept {
  tls_.reset();
}

void tcp_socket::stopped() const {
  throw socket_error("stopped reading from " + peer_, ECANCELED);
}

void tcp_socket::shake_tls(clock::time_point deadline, const wake_up* stop) {
  while (!tls_->shake()) {
    // A peer that sends a byte now and then is never waited for, but has to keep the deadline as well.
    const int rc =
        clock::now() < deadline ? wait_for(fd_, tls_->read_wants(), deadline, stop) : ETIMEDOUT;
    if (rc == ECANCELED) stopped();
    if (rc == ETIMEDOUT)
      throw tls_error(tls_fault::silent, peer_ +
                                             " has not finished the TLS handshake in time. It may "
                                             "be frozen, or no poseidon-node.");
  }
}

std::span<iovec> tcp_socket::write_tls(std::span<iovec> parts) {
  for (;;) {
    parts = tls_->write(parts);
    if (parts.empty() ||
        wait_for(fd_, tls_->write_wants(), clock::now() + write_patience, nullptr) == ETIMEDOUT)
      return parts;
  }
}

std::optional<std::size_t> tcp_socket::read_tls(std::span<const iovec> parts,
                                                clock::time_point deadline, std::size_t surely,
                                                const wake_up* stop) {
  for (;;) {
    if (const auto n = tls_->read(parts)) {
      inflow_.add(*n, clock::now());
      return n;
    }
    // Of a reader of few bytes nothing is asked that would outlast this wait: it may wait for the descriptor by itself.
    const auto to_come = surely >= worth_waiting_for ? tls_->bytes_to_come(surely) : 1;
    wake_for(to_come >= worth_waiting_for ? std::min(to_come, inflow_.worth_a_wake()) : 1);
    const int rc = wait_for(fd_, tls_->read_wants(), deadline, stop);
    if (rc == ECANCELED) stopped();
    if (rc == ETIMEDOUT) return tls_->read(parts);  // fewer bytes than it was to be woken for
  }
}

/// A peer of which bytes come is not silent, even if its record is not whole yet.
std::optional<std::size_t> tcp_socket::read_some_tls(std::span<const iovec> parts,
                                                     std::chrono::milliseconds limit,
                                                     std::size_t surely) {
  for (;;) {
    const auto before = tls_->received();
    if (const auto n = read_tls(parts, clock::now() + limit, surely, nullptr)) return n;
    if (tls_->received() == before) return std::nullopt;
  }
}

short tcp_socket::read_wants() const {
  return tls_ ? tls_->read_wants() : POLLIN;
}

short tcp_socket::write_wants() const {
  return tls_ ? tls_->write_wants() : POLLOUT;
}

std::optional<std::size_t> tcp_socket::read_now(std::span<std::byte> into) {
  if (tls_) {
    const iovec one{into.data(), into.size()};
    return tls_->read(std::span(&one, 1));
  }
  for (;;) {
    const auto n = ::recv(fd_, into.data(), into.size(), MSG_DONTWAIT);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
    throw socket_error("cannot read from " + peer_ + ": " + std::strerror(errno), errno);
  }
}

std::size_t tcp_socket::write_now(std::span<const std::byte> bytes) {
  if (tls_) {
    iovec one{const_cast<std::byte*>(bytes.data()), bytes.size()};
    const auto rest = tls_->write(std::span(&one, 1));
    return bytes.size() - (rest.empty() ? 0 : rest.front().iov_len);
  }
  for (;;) {
    const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    throw socket_error("cannot send to " + peer_ + ": " + std::strerror(errno), errno);
  }
}

void tcp_socket::linger(clock::time_point deadline) noexcept {
  ::shutdown(fd_, SHUT_WR);
  std::array<std::byte, 1024> rest;
  for (int reads = 0; reads < 16; ++reads) {  // a peer that sends without end is not waited for
    if (wait_for(fd_, POLLIN, deadline, nullptr) != 0) return;
    if (::recv(fd_, rest.data(), rest.size(), MSG_DONTWAIT) <= 0) return;
  }
}

}  // namespace poseidon
