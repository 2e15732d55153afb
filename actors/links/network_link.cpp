#include "actors/links/network_link.hpp"

#include "actors/core/core_wait.hpp"
#include "actors/core/trace.hpp"
#include "actors/links/link_receiver.hpp"
#include "messages/wire/tcp_flow.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace poseidon {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

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

network_link::network_link(actor_context context, std::shared_ptr<link_shared> shared)
    : actor<network_link>(context),
      shared_(std::move(shared)),
      line_(shared_->options.rate_mbit_s, clock::now()),
      budget_(shared_->options.budget_mbit_s, clock::now()),
      stall_(shared_->options.stall_limit),
      last_write_(shared_->options.now()) {}

void network_link::started() {
  tell_self(link_tick{}, shared_->options.heartbeat / 2);
}

void network_link::on_exit() {
  shared_->options.socket->shutdown();
}  // also ends the receiver

void network_link::on(const send_frame& m) {
  if (phase_ != phase::open) return;  // the node learns from link_lost that it was not sent
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
  line_.refill(clock::now());
  budget_.refill(clock::now());
  if (const auto wait = line_.wait(); wait.count() > 0) return want_pump(wait);
  if (outbox_.empty()) fill_outbox();
  if (outbox_.empty() && !queue_.empty()) return want_pump(budget_.wait());
  write_outbox();
  if (phase_ != phase::open && phase_ != phase::closing) return;
  if (!queue_.empty() || !outbox_.empty()) return want_pump();
  if (phase_ != phase::closing) return;
  if (goodbye_put_) return said_goodbye();
  goodbye_put_ = true;
  put_now(frames::goodbye{close_reason_});
  want_pump();
}

/// A link that closes has nothing left to plan: what waits is sent without regard to the budget.
std::optional<frame_queue::piece> network_link::next_piece() {
  const bool overdrawn = phase_ != phase::closing && budget_.wait().count() > 0;
  auto p = overdrawn ? queue_.take_without_payload() : queue_.take();
  if (p) budget_.spend(p->bytes.size());
  return p;
}

// At most 256 KiB of payload, chosen now: what arrives in the mailbox during the write is looked at
// before the next one.
void network_link::fill_outbox() {
  const auto from = shared_->binding()->self;
  try {
    while (!outbox_.full()) {
      auto p = next_piece();
      if (!p) break;
      outbox_.add(std::move(*p), from);
      // Under a limit the queue holds what waits, not the debt.
      if (line_.is_emptied_by(outbox_.bytes())) break;
    }
  } catch (const std::length_error& e) {
    break_off(e.what());
  }
}

// Past the queue and the budget: a few bytes between two writes.
void network_link::put_now(frame_header h) {
  frame_queue::piece p{std::make_shared<frame_queue::entry>(), {}, true, true};
  p.of->frame.header = std::move(h);
  outbox_.add(std::move(p), shared_->binding()->self);
}

// Leaves the rest in the outbox if the peer takes no more: pump() continues with it.
void network_link::write_outbox() {
  if (outbox_.empty()) return;
  const auto& o = shared_->options;
  if (outbox_.unwritten().empty()) {
    outbox_.begin_write(now_ns());
    stall_.offered(o.now());
  }
  const auto before = outbox_.unwritten_bytes();
  try {
    outbox_.set_unwritten(o.socket->write_some(outbox_.unwritten()));
  } catch (const socket_error&) {
    // The receiver finds out why: it reads what the peer said before it closed.
    outbox_.clear();
    return break_off("");
  }
  const auto now = o.now();
  if (outbox_.unwritten().empty()) {
    last_write_ = now;
    return written();
  }
  const auto stalled = stall_.after_write(now, before - outbox_.unwritten_bytes());
  if (!stalled) return want_pump();
  outbox_.clear();
  break_off("it has taken nothing of what waits for it for " + seconds_text(*stalled) + " (limit " +
            seconds_text(o.stall_limit) +
            "), though it can be heard: its process is stuck, or the network carries one direction "
            "only");
}

void network_link::written() {
  line_.spend(outbox_.bytes());
  auto& counters = *shared_->options.counters;
  counters.bytes_out.fetch_add(outbox_.bytes(), std::memory_order_relaxed);
  const auto end_ns = now_ns();
  const auto at = [begin_ns = outbox_.begin_ns(), end_ns,
                   all = static_cast<double>(outbox_.bytes())](std::size_t bytes) {
    return begin_ns + static_cast<std::int64_t>(static_cast<double>(end_ns - begin_ns) *
                                                (static_cast<double>(bytes) / all));
  };
  std::size_t before = 0;
  for (const auto& slot : outbox_.slots()) {
    const auto& p = slot.piece;
    if (p.first) p.of->started_ns = at(before);
    before += slot.bytes;
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
  outbox_.clear();
}

void network_link::on(const link_tick&) {
  const auto& o = shared_->options;
  const auto now = o.now();
  if (phase_ == phase::open || phase_ == phase::closing) {
    // While data waits to be written, a heartbeat would add nothing.
    if (now - last_write_ >= o.heartbeat / 2 && outbox_.empty() && !goodbye_put_) {
      put_now(frames::heartbeat{});
      write_outbox();
    }
    const auto binding = shared_->binding();
    if (binding->routes.flow)
      if (const auto flow = flow_of(o.socket->descriptor()))
        tell(binding->routes.flow, link_flow{binding->peer, flow->acked_bytes, flow->busy_us,
                                             flow->hindered_us, core_wait_us()});
  } else if (phase_ == phase::said_goodbye && now - goodbye_at_ > o.silence_limit) {
    o.socket->shutdown();  // the peer has had its time to end, and sends on
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
  // What waits may answer the peer's last frames. The peer reads until this node has said goodbye too, so it is
  // still sent.
  const bool something_waits = !queue_.empty() || !outbox_.empty();
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
  auto reason = !own_fault_.empty() ? own_fault_ : m.goodbye.value_or(ours ? close_reason_ : "");
  if (lost.on_purpose && !reason.empty()) lost.reason = std::move(reason);
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
