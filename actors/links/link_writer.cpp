#include "actors/links/link_writer.hpp"

#include "actors/core/trace.hpp"
#include "actors/links/frame_check.hpp"

#include <memory>
#include <stdexcept>
#include <utility>

namespace poseidon {

link_writer::link_writer(const link_options& options)
    : options_(options),
      line_(options.rate_mbit_s, std::chrono::steady_clock::now()),
      budget_(options.budget_mbit_s, std::chrono::steady_clock::now()),
      outbox_(options.keys),
      stall_(options.stall_limit),
      last_write_(options.now()) {}

void link_writer::drop_what_waits() {
  queue_.drop([](const frame_header& h) { return is_of_a_view(h) || is_of_its_senders_view(h); });
}

void link_writer::drop_what_is_for_the_page() {
  queue_.drop([](const frame_header& h) { return is_for_the_page(h); });
}

void link_writer::drop_shared_state() {
  queue_.drop(
      [](const frame_header& h) { return std::holds_alternative<frames::shared_state>(h); });
}

link_writer::step link_writer::write(const link_binding& b, bool closing) {
  line_.refill(std::chrono::steady_clock::now());
  budget_.refill(std::chrono::steady_clock::now());
  if (const auto wait = line_.wait(); wait.count() > 0) return {.again = wait};
  try {
    if (outbox_.empty()) fill_outbox(b.self, closing);
  } catch (const std::length_error& e) {
    outbox_.clear();
    return {.broken = e.what()};
  }
  if (outbox_.empty() && !queue_.empty()) return {.again = budget_.wait()};
  auto s = write_outbox(b);
  if (!s.broken && !s.again && !empty()) s.again = std::chrono::milliseconds{0};
  return s;
}

link_writer::step link_writer::write_heartbeat(const link_binding& b) {
  if (options_.now() - last_write_ < options_.heartbeat / 2 || !outbox_.empty()) return {};
  put_now(frames::heartbeat{}, b.self);
  return write_outbox(b);
}

std::optional<frame_queue::piece> link_writer::next_piece(bool closing) {
  const bool overdrawn = !closing && budget_.wait().count() > 0;
  auto p = overdrawn ? queue_.take_without_payload() : queue_.take();
  if (p) budget_.spend(p->bytes.size());
  return p;
}

// At most 256 KiB of payload, chosen now: what arrives in the mailbox during the write is looked at before the next one.
void link_writer::fill_outbox(const frame_writer& self, bool closing) {
  while (!outbox_.full()) {
    auto p = next_piece(closing);
    if (!p) break;
    outbox_.add(std::move(*p), self);
    // Under a limit the queue holds what waits, not the debt.
    if (line_.is_emptied_by(outbox_.bytes())) break;
  }
}

void link_writer::put_now(frame_header h, const frame_writer& self) {
  frame_queue::piece p{std::make_shared<frame_queue::entry>(), {}, true, true};
  p.of->frame.header = std::move(h);
  outbox_.add(std::move(p), self);
}

// Leaves the rest in the outbox if the peer takes no more: the next write continues with it.
link_writer::step link_writer::write_outbox(const link_binding& b) {
  if (outbox_.empty()) return {};
  if (outbox_.unwritten().empty()) {
    outbox_.begin_write(now_ns());
    stall_.offered(options_.now());
  }
  const auto before = outbox_.unwritten_bytes();
  try {
    outbox_.set_unwritten(options_.socket->write_some(outbox_.unwritten()));
  } catch (const socket_error&) {
    // The receiver finds out why: it reads what the peer said before it closed.
    outbox_.clear();
    return {.broken = ""};
  }
  const auto now = options_.now();
  if (outbox_.unwritten().empty()) {
    last_write_ = now;
    written(b.peer);
    return {};
  }
  const auto stalled = stall_.after_write(now, before - outbox_.unwritten_bytes());
  if (!stalled) return {.again = std::chrono::milliseconds{0}};
  outbox_.clear();
  return {.broken = "it has taken nothing of what waits for it for " + seconds_text(*stalled) +
                    " (limit " + seconds_text(options_.stall_limit) +
                    "), though it can be heard: its process is stuck, or the network carries one "
                    "direction only"};
}

void link_writer::written(seat_id peer) {
  line_.spend(outbox_.bytes());
  auto& counters = *options_.counters;
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
    if (!options_.trace) continue;
    auto e = describe(p.of->frame.header);
    e.sent = true;
    e.peer = peer;
    e.start_ns = p.of->started_ns;
    e.end_ns = at(before);
    e.bytes = p.of->frame.data.bytes.size();
    options_.trace(e);
  }
  outbox_.clear();
}

}  // namespace poseidon
