#include "apps/web/server.hpp"

#include <algorithm>
#include <array>
#include <list>
#include <optional>
#include <poll.h>
#include <pthread.h>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace poseidon::web {

namespace {

using clock = std::chrono::steady_clock;

/// A stream's client with more unread bytes is skipped.
constexpr std::size_t slow_bytes = 1;
constexpr std::size_t longest_head = max_head_bytes - end_of_head.size();

struct connection {
  connection(std::shared_ptr<tcp_socket> s, clock::time_point now)
      : socket(std::move(s)), since(now) {}
  std::shared_ptr<tcp_socket> socket;
  std::string in, out;
  std::size_t written = 0;   // bytes of `out`
  std::size_t unwanted = 0;  // bytes that came behind the request of a stream
  std::unique_ptr<feed> streams;
  std::future<response> later;
  bool keep_alive = false;  // after `later`
  clock::time_point since;  // when the last request began or the last byte was read
  bool closing = false;     // when out is written
  bool refused = false;     // as one too many
  bool over = false;
  [[nodiscard]] int descriptor() const { return socket->descriptor(); }
  [[nodiscard]] std::size_t waiting() const { return out.size() - written; }
  /// Whether a request can be answered, or refused as too long or as none.
  [[nodiscard]] bool has_request() const {
    return !over && !closing && !streams && !later.valid() && waiting() == 0 &&
           (in.size() > longest_head || in.find(end_of_head) != std::string::npos || begins_tls());
  }
  /// Whether its bytes, as they came, are those of a client that speaks TLS.
  [[nodiscard]] bool begins_tls() const { return in.starts_with('\x16'); }
  [[nodiscard]] bool has_read_ahead() const {
    return socket->tls() != nullptr && socket->tls()->has_read_ahead();
  }
  /// Not while the requests that have come wait for their turn.
  [[nodiscard]] bool wants_more() const {
    return closing || streams || in.size() <= max_head_bytes;
  }
  [[nodiscard]] std::string address() const {
    return socket->peer().substr(0, socket->peer().rfind(':'));
  }
};

}  // namespace

class server::loop {
 public:
  loop(server_options options, std::shared_ptr<site> shown)
      : options_(std::move(options)), site_(std::move(shown)), listener_(options_.at) {
    options_.at.port = listener_.port();
    if (options_.tls && !options_.tls->has_certificate())
      throw std::invalid_argument("an encrypted page needs a certificate");
  }

  [[nodiscard]] const host_port& at() const { return options_.at; }
  [[nodiscard]] std::string url() const {
    return (options_.tls ? "https://" : "http://") + to_string(options_.at) + "/";
  }
  void stop() { stop_.set(); }

  void run() {
    auto next_tick = clock::now() + options_.tick;
    for (;;) {
      const auto left = next_tick - clock::now();
      wait(std::max(std::chrono::duration_cast<std::chrono::milliseconds>(left),
                    std::chrono::milliseconds{0}));
      if (stop_.wait(std::chrono::milliseconds{0})) return say_goodbye();
      const auto now = clock::now();
      if (now >= next_tick) {
        tick();
        // After a pause (a stopped process) there is nothing to catch up with.
        next_tick = std::max(next_tick + options_.tick, now);
      }
      for (auto& c : connections_) take_request(c);
      for (auto& c : connections_) take_late_answer(c);
      bound_memory();
      for (auto& c : connections_) expire(c, now);
      connections_.remove_if([](const connection& c) { return c.over; });
    }
  }

 private:
  void wait(std::chrono::milliseconds limit) {
    polled_.clear();
    polled_.push_back({stop_.descriptor(), POLLIN, 0});
    polled_.push_back({listener_.to_poll(), POLLIN, 0});
    for (const auto& c : connections_) {
      if (c.later.valid()) limit = std::min(limit, look_for_late_answers);
      if (c.has_request() || (c.wants_more() && c.has_read_ahead()))
        limit = std::chrono::milliseconds{0};
      const auto to_read = c.wants_more() ? c.socket->read_wants() : 0;
      const auto to_write = c.waiting() > 0 ? c.socket->write_wants() : 0;
      polled_.push_back({c.descriptor(), static_cast<short>(to_read | to_write), 0});
    }
    const auto until = limit.count() == 0 ? 0 : static_cast<int>(limit.count()) + 1;
    if (poll(polled_.data(), polled_.size(), until) < 0) return;
    std::size_t i = 2;
    for (auto& c : connections_) {  // only those that were polled: new ones are accepted afterwards
      const auto events = polled_[i++].revents;
      if ((events & (POLLERR | POLLNVAL)) != 0) c.over = true;
      const bool reads = (events & (c.socket->read_wants() | POLLHUP)) != 0 ||
                         (c.wants_more() && c.has_read_ahead());
      const bool writes = c.waiting() > 0 && (events & c.socket->write_wants()) != 0;
      if (!c.over && reads) receive(c);
      if (!c.over && writes) write(c);
    }
    if ((polled_[1].revents & POLLIN) != 0) let_in();
  }

  void let_in() {
    std::shared_ptr<tcp_socket> s;
    try {
      s = listener_.accept(std::chrono::milliseconds{0});
    } catch (const socket_error&) {
      return;  // out of descriptors, for example: the next turn tries again, the others are served meanwhile
    }
    if (!s) return;
    if (options_.tls) s->use_tls(*options_.tls, tls_side::serves_pages);
    auto& c = connections_.emplace_back(std::move(s), clock::now());
    const auto from = c.address();
    // Those that are refused only wait for their clients to close: they keep nobody else out.
    const auto served = std::count_if(connections_.begin(), connections_.end(),
                                      [](const auto& x) { return !x.refused && !x.over; });
    const auto of_address =
        std::count_if(connections_.begin(), connections_.end(),
                      [&](const auto& x) { return !x.refused && !x.over && x.address() == from; });
    if (static_cast<std::size_t>(served) > options_.most_connections)
      refuse(c, "too many connections; close a tab\n");
    else if (static_cast<std::size_t>(of_address) > options_.most_per_address)
      refuse(c, "too many connections from " + from + ", at most " +
                    std::to_string(options_.most_per_address) + " are allowed; close a tab\n");
  }

  /// Of a flood of connections the oldest are not even read from any more.
  void refuse(connection& c, const std::string& why) {
    const auto waits = [](const auto& x) { return x.refused && !x.over; };
    const auto waiting = std::count_if(connections_.begin(), connections_.end(), waits);
    if (static_cast<std::size_t>(waiting) >= options_.most_connections)
      std::find_if(connections_.begin(), connections_.end(), waits)->over = true;
    c.refused = true;
    answer(c, {503, "text/plain; charset=utf-8", why, ""}, false);
  }

  /// Once: who sends without end keeps nobody else waiting.
  void receive(connection& c) {
    std::array<char, 16384> buffer;
    std::optional<std::size_t> n;
    try {
      n = c.socket->read_now(std::as_writable_bytes(std::span(buffer)));
    } catch (const tls_error& e) {
      return answer_without_tls(c, e);
    } catch (const socket_error&) {
      n = 0;
    }
    if (!n) return;
    if (*n == 0) {
      c.over = true;
    } else if (c.streams) {
      c.over = (c.unwanted += *n) > max_head_bytes;
    } else if (!c.closing) {  // else they are dropped
      if (c.in.empty()) c.since = clock::now();
      c.in.append(buffer.data(), *n);
    }
  }

  /// A client of http hears where to go; any other that breaks TLS has got TLS's own alert.
  void answer_without_tls(connection& c, const tls_error& e) {
    if (e.why != tls_fault::http) {
      c.over = true;
      return;
    }
    c.socket->drop_tls();
    answer(
        c,
        {400, "text/plain; charset=utf-8",
         "this page is encrypted: open " + url() + " in a browser, give a program --tls-ca\n", ""},
        false);
  }

  void take_request(connection& c) {
    if (!c.has_request()) return;
    if (c.begins_tls()) {  // it reads these words as what they are: no TLS
      c.in.clear();
      return answer(
          c, {400, "text/plain; charset=utf-8", "this page is not encrypted: " + url() + "\n", ""},
          false);
    }
    const auto end = c.in.find(end_of_head);
    if (std::min(end, c.in.size()) > longest_head) {
      answer(c, {431, "text/plain; charset=utf-8", "the request's head is longer than 8 KiB\n", ""},
             false);
      return;
    }
    const auto p = parse_head(std::string_view(c.in).substr(0, end), options_.hosts);
    c.in.erase(0, end + end_of_head.size());
    if (!p.ok) {
      answer(c, {p.refused.status, "text/plain; charset=utf-8", p.refused.text + "\n", ""}, false);
      return;
    }
    auto a = site_->get(*p.ok);
    if (a.streams) {
      c.streams = std::move(a.streams);
      c.in.clear();
      c.out = head_of(a.head, false, true);
      c.written = 0;
      c.since = clock::now();
      c.out += c.streams->next();
      write(c);
    } else if (a.later.valid()) {
      c.later = std::move(a.later);
      c.keep_alive = p.ok->keep_alive;
    } else {
      answer(c, a.head, p.ok->keep_alive);
    }
  }

  void take_late_answer(connection& c) {
    if (c.over || !c.later.valid() ||
        c.later.wait_for(std::chrono::seconds{0}) != std::future_status::ready)
      return;
    answer(c, c.later.get(), c.keep_alive);
  }

  void answer(connection& c, const response& r, bool keep_alive) {
    c.out = head_of(r, keep_alive, false) + r.body;
    c.written = 0;
    c.closing = !keep_alive;
    c.since = clock::now();
    write(c);
  }

  void write(connection& c) {
    while (c.waiting() > 0) {
      std::size_t n = 0;
      try {
        n = c.socket->write_now(std::as_bytes(std::span(c.out).subspan(c.written)));
      } catch (const socket_error&) {
        c.over = true;
      }
      if (n == 0) return;
      c.written += n;
      c.since = clock::now();
    }
    c.out = {};  // with its memory
    c.written = 0;
    // The server reads until the client closes or its time has passed: closing with unread bytes would
    // reset the connection, and the client might not get the answer.
    if (c.closing) c.socket->shutdown_writing();
  }

  void bound_memory() {
    std::size_t unread = 0;
    for (const auto& c : connections_) unread += c.over ? 0 : c.waiting();
    while (unread > options_.most_unread_bytes) {
      const auto most = std::max_element(
          connections_.begin(), connections_.end(), [](const auto& a, const auto& b) {
            return (a.over ? 0 : a.waiting()) < (b.over ? 0 : b.waiting());
          });
      unread -= most->waiting();
      most->over = true;
    }
  }

  void tick_site() {
    site_->tick(static_cast<std::size_t>(std::count_if(
        connections_.begin(), connections_.end(), [](auto& c) { return c.streams != nullptr; })));
  }

  void tick() {
    tick_site();
    for (auto& c : connections_) {
      if (!c.streams || c.over || c.waiting() >= slow_bytes) continue;
      c.out = c.streams->next();
      c.written = 0;
      write(c);
    }
  }

  void expire(connection& c, clock::time_point now) const {
    if (c.later.valid()) return;  // it waits for us
    const auto idle = now - c.since;
    if (c.streams) {
      if (c.waiting() > 0 && idle > options_.stream_patience) c.over = true;
    } else if (idle > (c.closing && c.waiting() == 0 ? std::min(options_.patience, closing_patience)
                                                     : options_.patience)) {
      c.over = true;
    }
  }

  /// Sends each stream its last events, behind what a slow reader still has to read.
  void say_goodbye() {
    const auto until = clock::now() + options_.goodbye_patience;
    tick_site();
    for (auto& c : connections_) {
      if (c.over) continue;
      if (c.streams) c.out += c.streams->next();
      write(c);
    }
    while (write_what_waits(until)) {
    }
    for (auto& c : connections_) c.socket->shutdown_writing();
  }

  /// Returns whether to go on: something waits still, and there is time.
  bool write_what_waits(clock::time_point until) {
    polled_.clear();
    std::vector<connection*> slow;
    for (auto& c : connections_) {
      if (c.over || c.waiting() == 0) continue;
      slow.push_back(&c);
      polled_.push_back({c.descriptor(), c.socket->write_wants(), 0});
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - clock::now()).count();
    if (slow.empty() || left <= 0) return false;
    if (poll(polled_.data(), polled_.size(), static_cast<int>(left)) <= 0) return false;
    for (std::size_t i = 0; i < slow.size(); ++i) {
      if ((polled_[i].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) slow[i]->over = true;
      if (!slow[i]->over && polled_[i].revents != 0) write(*slow[i]);
    }
    return true;
  }

  static constexpr std::chrono::milliseconds closing_patience{1000};
  static constexpr std::chrono::milliseconds look_for_late_answers{5};
  server_options options_;
  std::shared_ptr<site> site_;
  tcp_listener listener_;
  wake_up stop_;
  std::list<connection> connections_;
  std::vector<pollfd> polled_;
};

server::server(server_options options, std::shared_ptr<site> shown) {
  const auto at = to_string(options.at);
  try {
    loop_ = std::make_unique<loop>(std::move(options), std::move(shown));
  } catch (const socket_error& e) {
    throw std::invalid_argument("the page cannot be served at " + at + " (--web): " + e.what());
  }
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "page");  // as top -H shows it
    loop_->run();
  });
}

server::~server() {
  loop_->stop();
  thread_.join();
}

host_port server::address() const {
  return loop_->at();
}

std::string server::url() const {
  return loop_->url();
}

}  // namespace poseidon::web
