#include "actors/links/network_link.hpp"

#include "actors/core/trace.hpp"
#include "actors/links/link_receiver.hpp"
#include "messages/wire/checksum.hpp"
#include "messages/wire/codec.hpp"
#include "messages/wire/tcp_flow.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace poseidon {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t most_pieces_at_once = 16;  // small frames go together in one write

}  // namespace

std::string seconds_text(clock::duration d) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(d).count());
  return text;
}

std::string peer_name(worker_id peer, const std::string& address) {
  if (peer == no_worker) return "a joining node (" + address + ")";
  return "worker " + std::to_string(value(peer)) + " (" + address + ")";
}

link_event describe(const frame_header& h) {
  link_event e;
  e.kind = kind_name(h);
  std::visit(
      [&e](const auto& f) {
        if constexpr (requires { f.chunk; }) e.chunk = f.chunk;
        if constexpr (requires { f.layer; }) e.layer = f.layer;
        if constexpr (requires { f.clock; }) e.number = value(f.clock);
        if constexpr (requires { f.version; }) e.number = value(f.version);
      },
      h);
  return e;
}

// A token bucket that may go into debt by one write: nothing more is written until it is paid. So a
// write is never split, and what is written next is chosen when it may go, not before.
struct network_link::bucket {
  explicit bucket(double mbit_s) : bytes_per_s(mbit_s * 1e6 / 8) {}
  double bytes_per_s;  // 0: no limit
  double credit = 0;
  clock::time_point at = clock::now();

  // A wake-up can be late by milliseconds; what was saved up meanwhile may be spent at once.
  [[nodiscard]] double most_credit() const { return std::max(bytes_per_s * 0.02, 4096.0); }
  void refill(clock::time_point now) {
    credit = std::min(most_credit(),
                      credit + bytes_per_s * std::chrono::duration<double>(now - at).count());
    at = now;
  }
  void spend(std::size_t bytes) { credit -= static_cast<double>(bytes); }
  [[nodiscard]] milliseconds wait() const {
    if (bytes_per_s <= 0 || credit >= 0) return milliseconds{0};
    return milliseconds{1 + static_cast<long>(-credit * 1000 / bytes_per_s)};
  }
};

// One write: up to most_pieces_at_once pieces with their headers, as the kernel wants it.
struct network_link::outbox {
  struct slot {
    std::array<std::byte, preamble_bytes> preamble;
    std::vector<std::byte> header;
    frame_queue::piece piece;
    std::size_t bytes = 0;  // of all three
  };
  std::array<slot, most_pieces_at_once> slots;
  std::array<iovec, 3 * most_pieces_at_once> parts;
  std::size_t pieces = 0, used_parts = 0, bytes = 0, payload_bytes = 0;
  std::span<iovec> left;      // of parts, while a write is not finished
  std::int64_t begin_ns = 0;  // of that write

  void add(frame_queue::piece p, worker_id from) {
    auto& s = slots[pieces];
    const auto sum = crc32c(p.bytes);
    s.header.clear();
    if (p.first)
      encode_header(p.of->frame.header, {from, p.of->frame.data.bytes.size(), sum}, s.header);
    s.preamble = encode_preamble(
        {static_cast<std::uint32_t>(s.header.size() / 8), p.first ? crc32c(s.header) : sum});
    put(s.preamble);
    put(s.header);
    put(p.bytes);
    payload_bytes += p.bytes.size();
    s.bytes = s.preamble.size() + s.header.size() + p.bytes.size();
    s.piece = std::move(p);
    ++pieces;
  }
  void put(std::span<const std::byte> b) {
    if (b.empty()) return;
    parts[used_parts++] = {const_cast<std::byte*>(b.data()), b.size()};
    bytes += b.size();
  }
  void clear() {
    for (std::size_t i = 0; i < pieces; ++i) slots[i].piece = {};
    pieces = used_parts = bytes = payload_bytes = 0;
    left = {};
  }
  [[nodiscard]] bool empty() const { return pieces == 0; }
  [[nodiscard]] std::size_t left_bytes() const {
    std::size_t n = 0;
    for (const auto& part : left) n += part.iov_len;
    return n;
  }
};

network_link::network_link(actor_context context, std::shared_ptr<link_shared> shared)
    : actor<network_link>(context),
      shared_(std::move(shared)),
      line_(std::make_unique<bucket>(shared_->options.rate_mbit_s)),
      budget_(std::make_unique<bucket>(shared_->options.budget_mbit_s)),
      outbox_(std::make_unique<outbox>()),
      stall_(shared_->options.stall_limit),
      last_write_(shared_->options.now()) {}

network_link::~network_link() = default;

void network_link::started() {
  tell_self(link_tick{}, shared_->options.heartbeat / 2);
}

void network_link::on_exit() {
  shared_->options.socket->shutdown();
}  // also ends the receiver

void network_link::on(const send_frame& m) {
  if (phase_ != phase::open) return;  // said goodbye or lost: link_lost tells whoever cares
  auto frame = m;
  if (frame.priority > 0 && shared_->binding()->fifo) frame.priority = 1;
  queue_.push(std::move(frame));
  want_pump();
}

void network_link::on(const close_link& m) {
  if (phase_ != phase::open) return;
  phase_ = phase::closing;
  close_reason_ = m.reason;
  want_pump();
}

void network_link::on(const bind_link& m) {
  shared_->bind(m.binding);
  tell(m.binding->routes.bound, link_bound{m.binding->peer});
}

// A frame that waits for no budget does not wait for a pump that does.
void network_link::want_pump(milliseconds delay) {
  const auto due = clock::now() + delay;
  if (pump_due_ && *pump_due_ <= due) return;
  pump_due_ = due;
  tell_self(pump{++pump_turn_}, delay);
}

void network_link::on(const pump& m) {
  if (m.turn != pump_turn_) return;
  pump_due_.reset();
  if (phase_ != phase::open && phase_ != phase::closing) return;
  line_->refill(clock::now());
  budget_->refill(clock::now());
  if (const auto wait = line_->wait(); wait.count() > 0) return want_pump(wait);
  if (outbox_->empty()) fill_outbox();
  if (outbox_->empty() && !queue_.empty()) return want_pump(budget_->wait());
  write_outbox();
  if (phase_ != phase::open && phase_ != phase::closing) return;
  if (!queue_.empty() || !outbox_->empty()) return want_pump();
  if (phase_ != phase::closing) return;
  if (goodbye_put_) return said_goodbye();
  goodbye_put_ = true;
  put_now(frames::goodbye{close_reason_});
  want_pump();
}

/// Who closes has nothing left to plan: what still waits goes at once.
std::optional<frame_queue::piece> network_link::next_piece() {
  const bool overdrawn = phase_ != phase::closing && budget_->wait().count() > 0;
  auto p = overdrawn ? queue_.take_without_payload() : queue_.take();
  if (p) budget_->spend(p->bytes.size());
  return p;
}

// At most 256 KiB of payload, chosen now: what arrives in the mailbox during the write is looked at
// before the next one.
void network_link::fill_outbox() {
  const auto from = shared_->binding()->self;
  try {
    while (outbox_->pieces < most_pieces_at_once && outbox_->payload_bytes < piece_bytes) {
      auto p = next_piece();
      if (!p) break;
      outbox_->add(std::move(*p), from);
      // Under a limit the queue holds what waits, not the debt.
      if (line_->bytes_per_s > 0 && static_cast<double>(outbox_->bytes) >= line_->most_credit())
        break;
    }
  } catch (const std::length_error& e) {
    break_off(e.what());
  }
}

// Past the queue and the budget: a few bytes between two writes.
void network_link::put_now(frame_header h) {
  frame_queue::piece p{std::make_shared<frame_queue::entry>(), {}, true, true};
  p.of->frame.header = std::move(h);
  outbox_->add(std::move(p), shared_->binding()->self);
}

// Leaves the rest in the outbox if the peer takes no more: pump() comes back to it.
void network_link::write_outbox() {
  if (outbox_->empty()) return;
  const auto& o = shared_->options;
  if (outbox_->left.empty()) {
    outbox_->left = std::span(outbox_->parts).first(outbox_->used_parts);
    outbox_->begin_ns = now_ns();
    stall_.offered(o.now());
  }
  const auto before = outbox_->left_bytes();
  try {
    outbox_->left = o.socket->write_some(outbox_->left);
  } catch (const socket_error&) {
    // The receiver finds out why: it reads what the peer said before it closed.
    outbox_->clear();
    return break_off("");
  }
  const auto now = o.now();
  if (outbox_->left.empty()) {
    last_write_ = now;
    return written(outbox_->begin_ns);
  }
  const auto stalled = stall_.after_write(now, before - outbox_->left_bytes());
  if (!stalled) return want_pump();
  outbox_->clear();
  break_off("it has taken nothing of what waits for it for " + seconds_text(*stalled) + " (limit " +
            seconds_text(o.stall_limit) +
            "), though it can be heard: its process is stuck, or the network carries one direction "
            "only");
}

void network_link::written(std::int64_t begin_ns) {
  line_->spend(outbox_->bytes);
  auto& counters = *shared_->options.counters;
  counters.bytes_out.fetch_add(outbox_->bytes, std::memory_order_relaxed);
  const auto end_ns = now_ns();
  const auto at = [&, all = static_cast<double>(outbox_->bytes)](std::size_t bytes) {
    return begin_ns + static_cast<std::int64_t>(static_cast<double>(end_ns - begin_ns) *
                                                (static_cast<double>(bytes) / all));
  };
  for (std::size_t i = 0, before = 0; i < outbox_->pieces; ++i) {
    const auto& p = outbox_->slots[i].piece;
    if (p.first) p.of->started_ns = at(before);
    before += outbox_->slots[i].bytes;
    if (!p.last) continue;
    counters.frames_out.fetch_add(1, std::memory_order_relaxed);
    if (!shared_->options.trace) continue;
    auto e = describe(p.of->frame.header);
    e.sent = true;
    e.peer = shared_->binding()->peer;
    e.start_ns = p.of->started_ns;
    e.end_ns = at(before);
    e.bytes = p.of->frame.data.bytes.size();
    shared_->options.trace(e);
  }
  outbox_->clear();
}

void network_link::on(const link_tick&) {
  const auto& o = shared_->options;
  const auto now = o.now();
  if (phase_ == phase::open || phase_ == phase::closing) {
    // Where something waits to be written, a heartbeat says nothing more.
    if (now - last_write_ >= o.heartbeat / 2 && outbox_->empty() && !goodbye_put_) {
      put_now(frames::heartbeat{});
      write_outbox();
    }
    const auto binding = shared_->binding();
    if (binding->routes.flow)
      if (const auto flow = flow_of(o.socket->descriptor()))
        tell(binding->routes.flow,
             link_flow{binding->peer, flow->acked_bytes, flow->busy_us, flow->hindered_us});
  } else if (phase_ == phase::said_goodbye && now - goodbye_at_ > o.silence_limit) {
    o.socket->shutdown();  // it talks on as if nothing were; it has had its time
  }
  if (phase_ != phase::over) tell_self(link_tick{}, o.heartbeat / 2);
}

void network_link::said_goodbye() {
  phase_ = phase::said_goodbye;
  goodbye_at_ = shared_->options.now();
  shared_->options.socket->shutdown_writing();
  if (peer_done_) finish(*peer_done_);
}

void network_link::break_off(std::string why) {
  phase_ = phase::broken;
  own_fault_ = std::move(why);
  shared_->options.socket->shutdown();  // the receiver ends and says so
  if (peer_done_) finish(*peer_done_);
}

void network_link::on(const receiver_ended& m) {
  // What the peer said last before its goodbye may already have been answered: what waits for it
  // was told while it could still be reached, and it reads on until we have said goodbye too.
  const bool something_waits = !queue_.empty() || !outbox_->empty();
  if (m.goodbye && phase_ == phase::open && something_waits) phase_ = phase::closing;
  if (m.goodbye && phase_ == phase::closing) {
    peer_done_ = m;
    return want_pump();
  }
  finish(m);
}

void network_link::finish(const receiver_ended& m) {
  const bool ours = phase_ == phase::said_goodbye;
  phase_ = phase::over;
  const auto binding = shared_->binding();
  link_lost lost{binding->peer, m.why, ours || m.goodbye};
  if (!own_fault_.empty())
    lost.why = "the link to " + shared_->peer() + " was broken off: " + own_fault_;
  if (ours && !m.goodbye) {
    lost.why = "closed the link to " + shared_->peer();
    if (!close_reason_.empty()) lost.why += ": " + close_reason_;
  }
  tell(binding->routes.lost, std::move(lost));
  quit();
}

handle<network_link> open_link(caf::actor_system& system, edge_book& book, const std::string& name,
                               link_options options) {
  auto shared = std::make_shared<link_shared>();
  shared->options = std::move(options);
  shared->current = std::make_shared<const link_binding>(std::move(shared->options.binding));
  auto link = spawn<network_link>(system, book, thread_kind::own, name, shared);
  auto in = spawn<link_receiver>(system, book, thread_kind::own, name + " in", shared,
                                 port<receiver_ended>(link));
  tell_from_outside(in, begin_receiving{});
  return link;
}

}  // namespace poseidon
