#include "actors/telemetry/telemetry.hpp"

#include "messages/wire/codec.hpp"
#include "models/files/atomic_file.hpp"
#include "models/json.hpp"

#include <limits>
#include <utility>

namespace poseidon {

namespace {

constexpr std::chrono::milliseconds watch_interval{1000};
// between reports, with and without a reader
constexpr std::uint32_t seen_ms = 200, unseen_ms = 1000;
constexpr std::int64_t watch_holds_ns = 5'000'000'000;
constexpr auto after_all_else = std::numeric_limits<std::uint64_t>::max();

}  // namespace

telemetry::telemetry(actor_context context, telemetry_setup setup)
    : actor(context), setup_(std::move(setup)) {}

void telemetry::on(const connect_telemetry& m) {
  setup_.view->sample();  // folds the counts of the actors that a change of the view has ended
  if (m.to_leader.target() !=
      ports_->to_leader.target()) {  // another node leads, and asks if it shows the run
    known_ = {};
    watch_ = {};
  }
  ports_ = m;
  const bool has_work = m.watched || (m.shows && m.links.size() > 1);
  if (has_work && !std::exchange(ticks_, true)) tell_self(report_tick{});
}

void telemetry::on(const report_tick&) {
  if (ports_->shows) ask();
  if (ports_->watched) answer();
  const bool asked = now_ns() - watch_heard_ns_ < watch_holds_ns && watch_.sent_ns != 0;
  tell_self(report_tick{}, ports_->watched && asked ? std::chrono::milliseconds{watch_.interval_ms}
                                                    : watch_interval);
}

void telemetry::ask() {
  const auto interval = setup_.view->watchers() > 0 ? seen_ms : unseen_ms;
  for (const auto& link : ports_->links)
    tell(link, send_frame{frames::watch{now_ns(), interval}, {}, 0, ports_->epoch});
}

void telemetry::answer() {
  setup_.view->sample();           // also without a watch, because this empties the trace's lanes
  if (!ports_->to_leader) return;  // this node leads now, and shows nothing
  if (watch_.sent_ns == 0 || now_ns() - watch_heard_ns_ >= watch_holds_ns) return;
  if (under_way_.lock()) return;
  auto r = setup_.view->report_since(known_);
  r.asked_ns = watch_.sent_ns;
  r.heard_ns = watch_heard_ns_;
  const auto bytes = encode_report(r);
  under_way_ = bytes;
  // Whatever the view: the next one goes on where this one ends.
  tell(ports_->to_leader, send_frame{frames::report{}, {bytes, std::span(*bytes)}, after_all_else},
       bytes->size());
}

void telemetry::on(const control_passed& m) {
  const auto* w = std::get_if<frames::watch>(&m.header);
  if (w == nullptr) return;
  watch_ = *w;
  watch_heard_ns_ = now_ns();
}

void telemetry::on(const report_arrived& m) {
  try {
    setup_.view->take(m.from, decode_report(m.packed.bytes));
  } catch (const bad_frame& e) {
    setup_.view->history().note("the page does not show worker " + std::to_string(value(m.from)) +
                                ": " + e.what());
  }
}

std::string measured_graph_json(const edge_book& book) {
  json_array actors(json_layout::lines), edges(json_layout::lines);
  for (const auto& [name, type] : book.actors())
    actors.put(json_object().put("name", name).put("type", type));
  for (const auto& row : book.rows()) {
    json_object edge;
    edge.put("from", row.from).put("to", row.to).put("message", row.message);
    edges.put(edge.put("count", row.count).put("bytes", row.bytes));
  }
  return json_object().put("actors", actors).put("edges", edges).text() + "\n";
}

void telemetry::on(const shut_down&) {
  write_file(setup_.trace_file, [this] {
    setup_.view->sample();
    const auto recording = setup_.recording ? setup_.recording(*setup_.view) : "";
    write_in_pieces(setup_.trace_file, [&](const piece_writer& write) {
      setup_.trace->write(write, setup_.self, recording);
    });
  });
  write_file(setup_.graph_file,
             [this] { write_atomically(setup_.graph_file, measured_graph_json(*setup_.edges)); });
  quit();
}

/// What cannot be written is a warning: the training stands.
void telemetry::write_file(const std::filesystem::path& path, const std::function<void()>& write) {
  try {
    if (!path.empty()) write();
  } catch (const std::exception& e) {
    setup_.view->history().warning(e.what());
  }
}

}  // namespace poseidon
