#include "actors/telemetry/telemetry.hpp"

#include "messages/wire/codec.hpp"
#include "models/json.hpp"

#include <cstdio>
#include <fstream>
#include <limits>

namespace poseidon {

namespace {

constexpr std::chrono::milliseconds watch_interval{1000};
constexpr std::uint32_t seen_ms = 200,
                        unseen_ms = 1000;  // between reports, with and without a reader
constexpr std::int64_t watch_holds_ns = 5'000'000'000;
constexpr auto after_all_else = std::numeric_limits<std::uint64_t>::max();

}  // namespace

telemetry::telemetry(actor_context context, telemetry_setup setup)
    : actor(context), setup_(std::move(setup)) {}

void telemetry::on(const connect_telemetry& m) {
  const bool first = links_.empty();  // again after every change of routes
  links_ = m.links;
  if (first && (setup_.shows || setup_.watched)) tell_self(report_tick{});
}

void telemetry::on(const report_tick&) {
  if (setup_.shows) ask();
  if (setup_.watched) answer();
  const bool asked = now_ns() - watch_heard_ns_ < watch_holds_ns && watch_.sent_ns != 0;
  tell_self(report_tick{}, setup_.watched && asked ? std::chrono::milliseconds{watch_.interval_ms}
                                                   : watch_interval);
}

void telemetry::ask() {
  const auto interval = setup_.view->watchers() > 0 ? seen_ms : unseen_ms;
  for (const auto& link : links_) tell(link, send_frame{frames::watch{now_ns(), interval}, {}, 0});
}

void telemetry::answer() {
  setup_.view->sample();  // also if nobody asks: the trace's lanes are emptied by this
  if (watch_.sent_ns == 0 || now_ns() - watch_heard_ns_ >= watch_holds_ns) return;
  if (under_way_.lock() || links_.empty() || !links_.front()) return;
  auto r = setup_.view->report_since(told_);
  r.asked_ns = watch_.sent_ns;
  r.heard_ns = watch_heard_ns_;
  const auto bytes = encode_report(r);
  under_way_ = bytes;
  tell(links_.front(), send_frame{frames::report{}, {bytes, std::span(*bytes)}, after_all_else},
       bytes->size());
}

void telemetry::on(const control_arrived& m) {
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

std::string measured_graph_json(const edge_book& edges) {
  std::string out = "{\"actors\":[";
  const char* separator = "\n";
  for (const auto& [name, type] : edges.actors()) {
    out += separator + ("{\"name\":" + json_text(name)) + ",\"type\":" + json_text(type) + "}";
    separator = ",\n";
  }
  out += "],\n\"edges\":[";
  separator = "\n";
  for (const auto& row : edges.rows()) {
    out += separator + ("{\"from\":" + json_text(row.from)) + ",\"to\":" + json_text(row.to) +
           ",\"message\":" + json_text(row.message) + ",\"count\":" + std::to_string(row.count) +
           ",\"bytes\":" + std::to_string(row.bytes) + "}";
    separator = ",\n";
  }
  return out + "]}\n";
}

void telemetry::on(const shut_down&) {
  try {
    if (!setup_.trace_file.empty()) {
      setup_.view->sample();
      setup_.trace->write(setup_.trace_file, setup_.self,
                          setup_.recording ? setup_.recording(*setup_.view) : "");
    }
    if (!setup_.graph_file.empty()) {
      std::ofstream file(setup_.graph_file);
      if (!(file << measured_graph_json(*setup_.edges)).flush())
        throw std::runtime_error("cannot write the actor graph to " + setup_.graph_file.string());
    }
  } catch (const std::exception& e) {
    setup_.view->history().warning(e.what());
  }
  links_.clear();
  quit();
}

}  // namespace poseidon
