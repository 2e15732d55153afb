#include "actors/links/link_receiver.hpp"

#include "actors/core/trace.hpp"
#include "messages/frame_table.hpp"
#include "messages/overloaded.hpp"
#include "messages/wire/checksum.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>
#include <variant>

namespace poseidon {
namespace {

using clock = std::chrono::steady_clock;

std::string hex(std::uint32_t v) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", v);
  return text;
}

/// The kinds that go to the node. One that does not, and that deliver() does not name, does not compile.
template <class F>
concept control_frame = reaches_node<F>;

}  // namespace

void stream_reader::read(std::span<std::byte> into, std::size_t beyond) {
  const auto have = std::min(end_ - begin_, into.size());
  if (have > 0) std::memcpy(into.data(), ahead_.data() + begin_, have);
  begin_ += have;
  into = into.subspan(have);
  while (!into.empty()) {
    std::array<iovec, 2> parts{{{into.data(), into.size()}, {ahead_.data(), ahead_.size()}}};
    std::optional<std::size_t> got;
    try {
      got = socket_.read_some(parts, silence_.limit(), into.size() + beyond);
    } catch (const socket_error&) {
      note_gap();
      throw;
    }
    note_gap();
    if (!got) throw silent{};
    if (*got == 0) throw ended{};
    silence_.heard(clock::now());
    counters_.bytes_in.fetch_add(*got, std::memory_order_relaxed);
    const auto used = std::min(*got, into.size());
    into = into.subspan(used);
    begin_ = 0;
    end_ = *got - used;
  }
}

/// Also before the end of the connection: who wakes finds that the peer has closed it.
void stream_reader::note_gap() {
  const auto now = clock::now();
  if (silence_.is_late(now))
    counters_.gap_ended_at.store(now.time_since_epoch().count(), std::memory_order_relaxed);
}

link_receiver::link_receiver(actor_context context, std::shared_ptr<link_shared> shared,
                             handle<network_link> link)
    : actor<link_receiver>(context),
      shared_(std::move(shared)),
      link_(link),
      older_ended_(link),
      stream_(*shared_->options.socket, *shared_->options.counters,
              {shared_->options.first_word_limit, shared_->options.least_silence_limit,
               shared_->options.silence_limit, clock::now()}),
      pool_(shared_->options.pool_bytes),
      budget_(shared_->options.now()) {
  if (const auto& keys = shared_->options.keys) seal_.emplace(keys->in);
}

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
            {}};
  } catch (const stream_reader::silent&) {
    return {"no word from " + shared_->peer() + " for " +
                seconds_text(clock::now() - stream_.silence().last()) + " (limit " +
                seconds_text(stream_.silence().limit()) +
                "): it is frozen or overloaded, or the network between is down",
            {},
            true};
  } catch (const stream_reader::ended&) {
    if (goodbye_ && between_frames_) {
      const bool refused = goodbye_->of == frames::goodbye::cause::refused;
      return {shared_->peer() + (refused ? " refused this node" : " said goodbye") +
                  (goodbye_->reason.empty() ? "" : ": " + goodbye_->reason),
              goodbye_};
    }
    const auto where =
        open_.empty() ? std::string("in the middle of a frame")
                      : "in the middle of a " + std::string(kind_name(open_.back().head.header));
    return {shared_->peer() + " closed the connection " +
                (between_frames_ ? "without a goodbye" : where) +
                ": its process has ended, or gave the link up; its own last lines say why",
            {}};
  } catch (const std::exception& e) {  // the connection was reset, or the pool's limit was reached
    return {"the connection to " + shared_->peer() + " is lost: " + e.what(), {}};
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
  // The rest of the frame follows, and soon, unless other frames have begun too.
  const auto rest = f.place.size() - f.filled - piece.size();
  stream_.read(piece, open_.size() == 1 ? rest : 0);
  f.filled += piece.size();
  check_seal(
      start,
      p.header_words > 0 ? std::span<const std::byte>(header_) : std::span<const std::byte>{},
      piece);
  if (const auto sum = crc32c(piece); sum != expected)
    throw bad_frame(kind_name(f.head.header), "payload checksum", hex(sum), hex(expected));
  if (f.filled < f.place.size()) return;
  auto whole = std::move(f);
  open_.pop_back();
  const auto binding = whole.binding;
  deliver(std::move(whole));
  if (shared_->end_frame(binding)) tell(older_ended_, older_frames_ended{});
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
  // A frame that its first piece completes (a heartbeat, a small chunk) is never open.
  if (open_.size() == max_open_frames && f.head.payload_bytes > piece_bytes)
    throw bad_frame("frame", "number of frames begun", std::to_string(open_.size() + 1),
                    "at most " + std::to_string(max_open_frames));
  f.binding = shared_->begin_frame();
  stream_.silence().follow(f.binding->may_be_lost);
  f.late = is_late(f);
  if (!f.late) check_frame(f.head, f.binding->peer, f.binding->limits);
  budget_.admit(f.head.header, header_bytes + f.head.payload_bytes, shared_->options.now());
  if (f.binding->gate && !f.late) f.binding->gate->admit(f.head.header);
  if (f.head.payload_bytes > 0) find_place(f);
  return f;
}

/// What the peer has written in an earlier view is read and thrown away. It writes nothing of a later one before this node has
/// said that its links are bound to it; only what a page asks may be lost.
bool link_receiver::is_late(const open_frame& f) {
  const auto epoch = f.head.from.epoch, here = f.binding->self.epoch;
  if (is_for_the_page(f.head.header)) return epoch != here;
  if (!is_of_a_view(f.head.header)) return false;
  if (f.binding->between_views) return true;
  if (epoch == here) return false;
  if (epoch > here)
    throw bad_frame(kind_name(f.head.header), "epoch", std::to_string(epoch),
                    std::to_string(here) + ", as of this node's view");
  return true;
}

/// What was read before its tag is used by nobody yet: without a right one the link ends.
void link_receiver::check_seal(std::span<const std::byte> preamble,
                               std::span<const std::byte> header,
                               std::span<const std::byte> payload) {
  if (!seal_) return;
  seal_tag sent;
  stream_.read(sent);
  const std::array<std::span<const std::byte>, 3> parts{preamble, header, payload};
  if (!same_tag(sent, seal_->next(parts)))
    throw bad_frame("frame", "seal", "wrong", "one made with this connection's key");
}

/// Parameters and factors are read to where they are used, all other values to the pool.
void link_receiver::find_place(open_frame& f) {
  const auto& h = f.head;
  const auto landing_of_run = [&]() -> landing& {
    if (!f.binding->landing) throw bad_frame(kind_name(h.header), "time", "now", "after the view");
    return *f.binding->landing;
  };
  using own_place = std::optional<std::span<std::byte>>;
  const auto find = overloaded{
      [&](const frames::fresh_parameters& p) -> own_place {
        auto& to = landing_of_run();
        if (format_of(p, f.binding->limits) != wire_format::float32) return std::nullopt;
        return to.place(p.chunk, p.version);
      },
      [&](const frames::factors& u) -> own_place {
        return landing_of_run().place_factors(f.binding->worker, u);
      },
      [&](const frames::shared_state& s) -> own_place { return landing_of_run().place_shared(s); },
      [](const auto&) -> own_place { return std::nullopt; },
  };
  const auto place = f.late ? own_place{} : std::visit(find, h.header);
  if (!place) {
    auto buffer = pool_.take(h.payload_bytes);
    f.place = buffer.bytes;
    f.owner = std::move(buffer.owner);
  } else if (place->size() != h.payload_bytes) {
    throw bad_frame(kind_name(h.header), "payload size", std::to_string(h.payload_bytes),
                    std::to_string(place->size()));
  } else {
    f.place = *place;
  }
}

void link_receiver::deliver(open_frame f) {
  count_and_trace(f);
  if (f.late) return;
  const auto& to = f.binding->routes;
  const auto from = f.binding->worker;
  const auto seat = f.binding->peer;
  const auto bytes = f.place.size();
  payload values{std::move(f.owner), f.place};
  std::visit(overloaded{
                 [](const frames::heartbeat&) {},
                 [&](const frames::goodbye& bye) { goodbye_ = bye; },
                 [&](const frames::push_gradient& g) {
                   tell(to.shard,
                        gradient_arrived{from, g.chunk, g.clock, std::move(values), g.step}, bytes);
                 },
                 [&](const frames::gradient_squares& s) {
                   tell(to.shard_squares, squares_arrived{from, s.clock, std::move(values)}, bytes);
                 },
                 [&](const frames::fresh_parameters& p) {
                   if (!p.nothing && p.format != wire_format::float32)
                     f.binding->landing->take_rounded(p.chunk, p.version, p.format, values.bytes);
                   else if (!p.nothing && format_of(p, f.binding->limits) != wire_format::float32)
                     f.binding->landing->add_changes(p.chunk, p.version, values.bytes);
                   if (to.gather)
                     tell(to.gather(p.chunk), chunk_landed{p.chunk, p.version, p.nothing}, bytes);
                 },
                 [&](const frames::summed_gradient& s) {
                   tell(to.keeper, sum_arrived{s, std::move(values)}, bytes);
                 },
                 [&](const frames::factors& u) {
                   if (to.factors)
                     tell(to.factors(u.layer),
                          factors_landed{from, u.clock, u.rows, u.first, u.step}, bytes);
                 },
                 [&](const frames::lowrank_factor& p) {
                   if (to.lowrank)
                     tell(to.lowrank(p.layer),
                          lowrank_landed{from, p.clock, p.second, std::move(values)}, bytes);
                 },
                 [&](const frames::install_history& i) {
                   if (!to.history_owner) return;
                   tell(to.history_owner(i.chunk),
                        history_inherited{i.chunk, i.slot, i.first, std::move(values)}, bytes);
                 },
                 [&](const frames::history& h) {
                   tell(to.history_checkpointer,
                        history_arrived{from, h.chunk, h.slot, h.version, std::move(values)},
                        bytes);
                 },
                 [&](const frames::shared_state&) { tell(to.shared, shared_landed{bytes}, bytes); },
                 [&](const frames::report&) {
                   // A leader that has left reads none of those that are still on their way.
                   if (to.reports) tell(to.reports, report_arrived{seat, std::move(values)}, bytes);
                 },
                 [&](const frames::probe& p) {  // the others of a round only fill the line
                   if (p.last) tell(to.control, control_arrived{from, p, seat, f.head.from.epoch});
                 },
                 [&](const control_frame auto&) {
                   tell(to.control,
                        control_arrived{from, std::move(f.head.header), seat, f.head.from.epoch});
                 },
             },
             f.head.header);
}

void link_receiver::count_and_trace(const open_frame& f) const {
  auto& o = shared_->options;
  o.counters->frames_in.fetch_add(1, std::memory_order_relaxed);
  if (!f.place.empty())
    o.counters->values_in_at.store(stream_.silence().last().time_since_epoch().count(),
                                   std::memory_order_relaxed);
  if (!o.trace) return;
  auto e = describe(f.head.header);
  e.peer = f.binding->peer;
  e.start_ns = f.start_ns;
  e.end_ns = now_ns();
  e.bytes = f.place.size();
  o.trace(e);
}

}  // namespace poseidon
