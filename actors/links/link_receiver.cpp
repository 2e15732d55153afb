#include "actors/links/link_receiver.hpp"

#include "actors/core/trace.hpp"
#include "messages/node_report.hpp"
#include "messages/wire/checksum.hpp"
#include "models/device/square_sum.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>

namespace poseidon {
namespace {

using clock = std::chrono::steady_clock;

std::string hex(std::uint32_t v) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", v);
  return text;
}

wire_format format_in(const link_limits& limits, chunk_id id) {
  return value(id) < limits.chunk_formats.size() ? limits.chunk_formats[value(id)]
                                                 : wire_format::float32;
}

/// Only gradients and updates are ever reduced.
template <class F>
wire_format format_in(const link_limits& limits, const F& f) {
  if constexpr (std::is_same_v<F, frames::push_gradient>) return format_in(limits, f.chunk);
  if constexpr (std::is_same_v<F, frames::fresh_parameters>)
    if (value(f.version) > limits.first_version) return format_in(limits, f.chunk);
  return wire_format::float32;
}

template <class F>
void check_chunk(const decoded_header& h, const link_limits& limits, const F& f) {
  const auto chunk = f.chunk;
  const auto kind = kind_name(h.header);
  const auto chunks = limits.chunk_values.size();
  if (value(chunk) >= chunks) {
    throw bad_frame(kind, "chunk", std::to_string(value(chunk)),
                    chunks == 0 ? "none before this node knows the run's chunks"
                                : "at most " + std::to_string(chunks - 1));
  }
  if constexpr (std::is_same_v<F, frames::install_history>) {
    const auto of_chunk = " of chunk " + std::to_string(value(chunk));
    const auto values = limits.chunk_values[value(chunk)];
    if (f.first >= values)
      throw bad_frame(kind, "first value" + of_chunk, std::to_string(f.first),
                      "less than " + std::to_string(values));
    const auto most = sizeof(float) * (values - f.first);
    if (h.payload_bytes == 0 || h.payload_bytes % sizeof(float) != 0 || h.payload_bytes > most)
      throw bad_frame(kind, "payload size" + of_chunk, std::to_string(h.payload_bytes),
                      "a multiple of 4 up to " + std::to_string(most));
    return;
  }
  const auto bytes = width(format_in(limits, f)) * limits.chunk_values[value(chunk)];
  if (h.payload_bytes != bytes) {
    throw bad_frame(kind, "payload size of chunk " + std::to_string(value(chunk)),
                    std::to_string(h.payload_bytes), std::to_string(bytes));
  }
}

void check_squares(const decoded_header& h, const link_limits& limits) {
  if (!limits.clips)
    throw bad_frame("gradient_squares", "clip_gradients", "set", "unset, as in this run's solver");
  if (h.payload_bytes != square_sum::bytes)
    throw bad_frame("gradient_squares", "payload size", std::to_string(h.payload_bytes),
                    std::to_string(square_sum::bytes));
}

void check_factors(const decoded_header& h, const link_limits& limits, const frames::factors& f) {
  const auto layer = value(f.layer);
  const auto of_layer = [&](const char* field) {
    return std::string(field) + " of layer " + std::to_string(layer);
  };
  if (layer >= limits.factors.size() || limits.factors[layer].rows == 0)
    throw bad_frame("factors", "layer", std::to_string(layer),
                    "one whose route is factor_broadcast");
  auto shape = limits.factors[layer];
  if (f.rows == 0 || f.rows > shape.rows)
    throw bad_frame("factors", of_layer("rows"), std::to_string(f.rows),
                    "1 to " + std::to_string(shape.rows));
  shape.rows = f.rows;
  const auto values = f.first < shape.values() ? factor_piece(shape, f.first) : 0;
  if (values == 0)
    throw bad_frame("factors", of_layer("first value"), std::to_string(f.first),
                    "less than " + std::to_string(shape.values()));
  if (h.payload_bytes != sizeof(float) * values)
    throw bad_frame("factors", of_layer("payload size"), std::to_string(h.payload_bytes),
                    std::to_string(sizeof(float) * values));
}

void check_report(const decoded_header& h, const link_routes& routes) {
  if (!routes.reports)
    throw bad_frame("report", "reader", "this node", "the first node, while it shows the run");
  if (h.payload_bytes > max_report_bytes)
    throw bad_frame("report", "payload size", std::to_string(h.payload_bytes),
                    "at most " + std::to_string(max_report_bytes));
}

void check_slot(std::string_view kind, const link_limits& limits, std::uint32_t slot) {
  if (slot < limits.history_slots) return;
  throw bad_frame(kind, "slot", std::to_string(slot),
                  "less than " + std::to_string(limits.history_slots));
}

}  // namespace

void check_frame(const decoded_header& h, const link_binding& run) {
  const auto kind = kind_name(h.header);
  // A joiner has no id before its view says so, and neither have we for it.
  if (h.from != run.peer && h.from != no_worker && run.peer != no_worker) {
    throw bad_frame(kind, "from", std::to_string(value(h.from)), std::to_string(value(run.peer)));
  }
  std::visit(
      [&](const auto& f) {
        if constexpr (requires { f.chunk; }) check_chunk(h, run.limits, f);
        if constexpr (std::is_same_v<std::decay_t<decltype(f)>, frames::gradient_squares>)
          check_squares(h, run.limits);
        if constexpr (std::is_same_v<std::decay_t<decltype(f)>, frames::factors>)
          check_factors(h, run.limits, f);
        if constexpr (std::is_same_v<std::decay_t<decltype(f)>, frames::report>)
          check_report(h, run.routes);
        if constexpr (requires { f.slot; }) check_slot(kind, run.limits, f.slot);
        if constexpr (requires { f.worker; }) {
          if (f.worker != run.peer && run.peer != no_worker) {
            throw bad_frame(kind, "worker", std::to_string(value(f.worker)),
                            std::to_string(value(run.peer)));
          }
        }
      },
      h.header);
}

void stream_reader::read(std::span<std::byte> into, std::size_t beyond) {
  const auto have = std::min(end_ - begin_, into.size());
  if (have > 0) std::memcpy(into.data(), ahead_.data() + begin_, have);
  begin_ += have;
  into = into.subspan(have);
  while (!into.empty()) {
    std::array<iovec, 2> parts{{{into.data(), into.size()}, {ahead_.data(), ahead_.size()}}};
    const auto got = socket_.read_some(parts, limit_, into.size() + beyond);
    if (!got) throw silent{};
    if (*got == 0) throw ended{};
    heard_ = std::chrono::steady_clock::now();
    limit_ = silence_;
    counters_.bytes_in.fetch_add(*got, std::memory_order_relaxed);
    const auto used = std::min(*got, into.size());
    into = into.subspan(used);
    begin_ = 0;
    end_ = *got - used;
  }
}

link_receiver::link_receiver(actor_context context, std::shared_ptr<link_shared> shared,
                             port<receiver_ended> link)
    : actor<link_receiver>(context),
      shared_(std::move(shared)),
      link_(std::move(link)),
      stream_(*shared_->options.socket, *shared_->options.counters,
              shared_->options.first_word_limit, shared_->options.silence_limit),
      pool_(shared_->options.pool_bytes) {}

void link_receiver::on(const begin_receiving&) {
  auto end = receive_all();
  open_.clear();
  // Wakes our writing half if it is stuck in a write. A peer that said goodbye reads on until we
  // have flushed.
  if (!end.goodbye) shared_->options.socket->shutdown();
  tell(link_, std::move(end));
  quit();
}

receiver_ended link_receiver::receive_all() {
  try {
    for (;;) receive_piece();
  } catch (const bad_frame& e) {
    return {shared_->peer() + " sent a bad frame: " + e.what() +
                ". The link is closed. Either something on the way damages bytes (memory, a "
                "network card), or "
                "the two nodes run different builds.",
            false};
  } catch (const stream_reader::silent&) {
    return {"no word from " + shared_->peer() + " for " +
                seconds_text(clock::now() - stream_.heard()) + " (limit " +
                seconds_text(stream_.limit()) +
                "): it is frozen or overloaded, or the network between is down",
            false};
  } catch (const stream_reader::ended&) {
    if (goodbye_ && between_frames_) {
      return {shared_->peer() + " said goodbye" + (goodbye_->empty() ? "" : ": " + *goodbye_),
              true};
    }
    const auto where =
        open_.empty() ? std::string("in the middle of a frame")
                      : "in the middle of a " + std::string(kind_name(open_.back().head.header));
    return {shared_->peer() + " closed the connection " +
                (between_frames_ ? "without a goodbye" : where) +
                ": its process has ended, or gave the link up; its own last lines say why",
            false};
  } catch (const std::exception& e) {  // the connection was reset, or the pool's limit was reached
    return {"the connection to " + shared_->peer() + " is lost: " + e.what(), false};
  }
}

void link_receiver::receive_piece() {
  std::array<std::byte, preamble_bytes> start;
  between_frames_ = open_.empty();
  stream_.read(std::span(start).first(1));
  between_frames_ = false;
  stream_.read(std::span(start).subspan(1));
  const auto p = decode_preamble(start);
  auto expected = p.checksum;
  if (p.header_words > 0) {
    open_.push_back(begin_frame(p.header_words * std::size_t{8}, p.checksum));
    expected = open_.back().head.payload_checksum;
  } else if (open_.empty()) {
    throw bad_frame("frame", "header size", "0", "a header, as no frame has been begun");
  }
  auto& f = open_.back();
  const auto piece = f.place.subspan(f.filled, std::min(piece_bytes, f.place.size() - f.filled));
  // The rest of the frame follows for sure, and soon, unless it shares the line with others that were begun.
  const auto rest = f.place.size() - f.filled - piece.size();
  stream_.read(piece, open_.size() == 1 ? rest : 0);
  f.filled += piece.size();
  if (const auto sum = crc32c(piece); sum != expected)
    throw bad_frame(kind_name(f.head.header), "payload checksum", hex(sum), hex(expected));
  if (f.filled < f.place.size()) return;
  auto whole = std::move(f);
  open_.pop_back();
  deliver(std::move(whole));
}

link_receiver::open_frame link_receiver::begin_frame(std::size_t header_bytes,
                                                     std::uint32_t checksum) {
  header_.resize(header_bytes);
  stream_.read(header_);
  if (const auto sum = crc32c(header_); sum != checksum)
    throw bad_frame("frame", "header checksum", hex(sum), hex(checksum));
  open_frame f;
  f.start_ns = now_ns();
  f.head = decode_header(header_);
  // One that is whole in its first piece (a heartbeat, the smallest of chunks) never lies open.
  if (open_.size() == max_open_frames && f.head.payload_bytes > piece_bytes)
    throw bad_frame("frame", "number of frames begun", std::to_string(open_.size() + 1),
                    "at most " + std::to_string(max_open_frames));
  f.binding = shared_->binding();
  check_frame(f.head, *f.binding);
  if (f.binding->gate) f.binding->gate->admit(f.head.header);
  if (f.head.payload_bytes == 0) return f;
  const auto* fresh = std::get_if<frames::fresh_parameters>(&f.head.header);
  const auto* factors = std::get_if<frames::factors>(&f.head.header);
  const auto kind = kind_name(f.head.header);
  auto& landing = f.binding->landing;
  if ((fresh != nullptr || factors != nullptr) && !landing)
    throw bad_frame(kind, "time", "now", "after the view");
  const bool rounded =
      fresh != nullptr && format_in(f.binding->limits, *fresh) != wire_format::float32;
  if (factors != nullptr || (fresh != nullptr && !rounded)) {
    f.place = fresh != nullptr ? landing->place(fresh->chunk, fresh->version)
                               : landing->place_factors(f.binding->peer, *factors);
    if (f.place.size() != f.head.payload_bytes) {
      throw bad_frame(kind, "payload size", std::to_string(f.head.payload_bytes),
                      std::to_string(f.place.size()));
    }
    return f;
  }
  auto buffer = pool_.take(f.head.payload_bytes);
  f.place = buffer.bytes;
  f.owner = std::move(buffer.owner);
  return f;
}

void link_receiver::deliver(open_frame f) {
  auto& o = shared_->options;
  o.counters->frames_in.fetch_add(1, std::memory_order_relaxed);
  if (o.trace) {
    auto e = describe(f.head.header);
    e.peer = f.binding->peer;
    e.start_ns = f.start_ns;
    e.end_ns = now_ns();
    e.bytes = f.place.size();
    o.trace(e);
  }
  const auto& to = f.binding->routes;
  const auto from = f.binding->peer;
  const auto bytes = f.place.size();
  payload values{std::move(f.owner), f.place};
  if (std::holds_alternative<frames::heartbeat>(f.head.header)) return;
  if (const auto* bye = std::get_if<frames::goodbye>(&f.head.header)) {
    goodbye_ = bye->reason;
  } else if (const auto* g = std::get_if<frames::push_gradient>(&f.head.header)) {
    tell(to.shard, gradient_arrived{from, g->chunk, g->clock, std::move(values)}, bytes);
  } else if (const auto* s = std::get_if<frames::gradient_squares>(&f.head.header)) {
    tell(to.shard_squares, squares_arrived{from, s->clock, std::move(values)}, bytes);
  } else if (const auto* p = std::get_if<frames::fresh_parameters>(&f.head.header)) {
    if (format_in(f.binding->limits, *p) != wire_format::float32)
      f.binding->landing->add_changes(p->chunk, p->version, values.bytes);
    if (to.gather) tell(to.gather(p->chunk), chunk_landed{p->chunk, p->version}, bytes);
  } else if (const auto* u = std::get_if<frames::factors>(&f.head.header)) {
    if (to.factors)
      tell(to.factors(u->layer), factors_landed{from, u->clock, u->rows, u->first}, bytes);
  } else if (const auto* i = std::get_if<frames::install_history>(&f.head.header)) {
    if (to.history_owner)
      tell(to.history_owner(i->chunk),
           history_arrived{from, i->chunk, i->slot, version_id{}, std::move(values), i->first},
           bytes);
  } else if (const auto* h = std::get_if<frames::history>(&f.head.header)) {
    tell(to.history_checkpointer,
         history_arrived{from, h->chunk, h->slot, h->version, std::move(values)}, bytes);
  } else if (std::holds_alternative<frames::report>(f.head.header)) {
    tell(to.reports, report_arrived{from, std::move(values)}, bytes);
  } else {
    tell(to.control, control_arrived{from, std::move(f.head.header)});
  }
}

}  // namespace poseidon
