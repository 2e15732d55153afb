#include "apps/web/client.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <poll.h>
#include <stdexcept>
#include <string_view>

namespace poseidon::web {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t most_bytes = 512u << 20;
constexpr auto connect_patience = 5000ms, answer_patience = 10000ms, stream_patience = 5000ms;
constexpr auto glance = 200ms;

/// Appends to `all` the bytes that come within `limit` or until `stop` is set; sets `closed` when the other side has closed.
/// Returns  whether bytes have come, or the other side has closed. Errors   socket_error.
bool read_more(tcp_socket& s, std::string& all, std::chrono::milliseconds limit,
               const wake_up* stop, bool& closed) {
  const bool is_here = s.tls() != nullptr && s.tls()->has_read_ahead();
  if (!is_here && wait_for(s.descriptor(), POLLIN, clock::now() + limit, stop) != 0) return false;
  std::array<char, 65536> some;
  iovec part{some.data(), some.size()};
  const auto n = s.read_some({&part, 1}, limit);
  if (!n) return false;
  closed = *n == 0;
  all.append(some.data(), *n);
  return true;
}

std::runtime_error does_not_answer(const std::string& name) {
  return std::runtime_error(
      name +
      " does not answer. Is it the address of a page (poseidon-node --web), and not that of "
      "--listen?");
}

bool stopped(const wake_up* stop) {
  return stop != nullptr && stop->wait(0ms);
}

std::shared_ptr<tcp_socket> asked(const page_address& from, const std::string& target,
                                  const wake_up* stop) {
  std::shared_ptr<tcp_socket> socket;
  try {
    socket = connect_to(from.at, connect_patience, stop);
  } catch (const socket_error& e) {
    if (e.error != ECONNREFUSED) throw;
    throw socket_error("no page at " + to_string(from.at) +
                           ": no program listens there (connection refused). A node serves its "
                           "page if it is started with --web; its line \"page at ...\" has the "
                           "address for --attach.",
                       e.error);
  }
  if (from.tls) {
    socket->use_tls(*from.tls, tls_side::dials);
    socket->shake_tls(clock::now() + answer_patience, stop);
  }
  auto request =
      "GET " + target + " HTTP/1.1\r\nHost: " + to_string(from.at) + "\r\nConnection: close\r\n";
  if (!from.token.empty()) request += "Authorization: Bearer " + from.token + "\r\n";
  request += "\r\n";
  socket->write(std::as_bytes(std::span(request)));
  return socket;
}

std::string header(std::string_view head, std::string_view name) {
  for (auto at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at + 2)) {
    const auto field = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
    const auto same = field.size() > name.size() && field[name.size()] == ':' &&
                      std::equal(name.begin(), name.end(), field.begin(), [](char a, char b) {
                        return std::tolower(static_cast<unsigned char>(a)) ==
                               std::tolower(static_cast<unsigned char>(b));
                      });
    if (!same) continue;
    const auto value = field.find_first_not_of(' ', name.size() + 1);
    return value == std::string_view::npos ? std::string() : std::string(field.substr(value));
  }
  return {};
}

/// Reads a complete head. Errors   std::runtime_error: not HTTP.
response head_only(std::string_view head, const std::string& name) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  constexpr std::size_t status_at = 9;
  if (!head.starts_with("HTTP/1.1 ") || head.size() < status_at + 3 ||
      !std::all_of(head.begin() + status_at, head.begin() + status_at + 3, digit))
    throw std::runtime_error(
        name +
        " is no page of a node: it answers with something else than HTTP. A node's page is "
        "where its line \"page at ...\" says, not at its --listen.");
  response r;
  r.status = 100 * (head[9] - '0') + 10 * (head[10] - '0') + (head[11] - '0');
  r.type = header(head, "Content-Type");
  if (const auto d = header(head, "Content-Disposition"); !d.empty())
    r.extra = "Content-Disposition: " + d + "\r\n";
  return r;
}

[[noreturn]] void refuse(const std::string& name, const std::string& target, const response& r) {
  if (r.status == 401)
    throw std::runtime_error(
        name +
        " wants a token: give --web-token-file FILE, whose first line is that of the node's.");
  auto text = r.body;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  throw std::runtime_error(name + " answers " + std::to_string(r.status) + " to " + target + ": " +
                           text);
}

}  // namespace

response get(const page_address& from, const std::string& target, const wake_up* stop) {
  const auto name = to_string(from.at);
  const auto socket = asked(from, target, stop);
  std::string all;
  bool closed = false;
  for (auto heard = clock::now(); !closed;) {
    if (read_more(*socket, all, 1000ms, stop, closed)) heard = clock::now();
    if (stopped(stop) || all.size() > most_bytes || clock::now() - heard > answer_patience)
      throw does_not_answer(name);
  }
  const auto end = all.find(end_of_head);
  auto r = head_only(std::string_view(all).substr(0, end), name);
  if (end != std::string::npos) r.body = all.substr(end + end_of_head.size());
  return r;
}

std::string fetch(const page_address& from, const std::string& target) {
  auto r = get(from, target);
  if (r.status != 200) refuse(to_string(from.at), target, r);
  return std::move(r.body);
}

event_stream::event_stream(const page_address& from, const std::string& target, const wake_up* stop)
    : name_(to_string(from.at)), stop_(stop), socket_(asked(from, target, stop)) {
  bool closed = false;
  heard_ = clock::now();
  while (!closed && come_.find(end_of_head) == std::string::npos) {
    if (read_more(*socket_, come_, glance, stop_, closed)) heard_ = clock::now();
    if (stopped(stop_) || clock::now() - heard_ > answer_patience) throw does_not_answer(name_);
  }
  const auto end = come_.find(end_of_head);
  auto r = head_only(std::string_view(come_).substr(0, end), name_);
  come_.erase(0, end == std::string::npos ? end : end + end_of_head.size());
  if (r.status == 200) return;
  r.body = come_;
  refuse(name_, target, r);
}

std::string event_stream::next() {
  bool closed = false;
  if (read_more(*socket_, come_, glance, stop_, closed)) heard_ = clock::now();
  // The events that have come are returned first; the next call finds the end again.
  const auto end = come_.rfind("\n\n");
  if (end != std::string::npos) {
    auto whole = come_.substr(0, end + 2);
    come_.erase(0, end + 2);
    return whole;
  }
  if (closed) throw std::runtime_error(name_ + " has closed the connection");
  if (clock::now() - heard_ > stream_patience)
    throw std::runtime_error(name_ + " has said nothing for " +
                             std::to_string(stream_patience / 1s) + " s");
  return {};
}

}  // namespace poseidon::web
