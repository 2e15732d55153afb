#include "actors/links/link_spans.hpp"

#include <memory>
#include <utility>

namespace poseidon {

link_trace spans_of_link(const std::shared_ptr<trace_log>& log, const std::string& link,
                         kept_names<chunk_id> chunk_layers, kept_names<layer_id> layers) {
  // A lane has memory. Where nothing is recorded there is none, and where the link has ended none is left, or a run would hold more
  // with each node that has come and gone.
  struct lanes {
    explicit lanes(std::shared_ptr<trace_log> in_log) : log(std::move(in_log)) {}
    lanes(const lanes&) = delete;
    lanes& operator=(const lanes&) = delete;
    ~lanes() {
      log->end_lane(out);
      log->end_lane(in);
    }
    std::shared_ptr<trace_log> log;
    trace_lane *out = nullptr, *in = nullptr;  // each used by one thread
  };
  return [log, link, of_link = std::make_shared<lanes>(log), chunk_layers = std::move(chunk_layers),
          layers = std::move(layers)](const link_event& e) {
    if (!log->enabled()) return;
    auto*& lane = e.sent ? of_link->out : of_link->in;
    if (lane == nullptr) lane = log->early_lane(link + (e.sent ? " out" : " in"));
    if (e.layer && layers->contains(*e.layer))
      lane->record({.name = (*layers)[*e.layer],
                    .phase = e.sent ? span_phase::broadcast : span_phase::collect,
                    .begin_ns = e.start_ns,
                    .end_ns = e.end_ns,
                    .clock = e.number,
                    .bytes = e.bytes});
    if (!e.chunk || !chunk_layers->contains(*e.chunk)) return;
    const bool gradient = e.kind == "push_gradient";
    const auto phase = e.sent ? (gradient ? span_phase::push : span_phase::send)
                              : (gradient ? span_phase::receive : span_phase::pull);
    lane->record({.name = (*chunk_layers)[*e.chunk],
                  .phase = phase,
                  .begin_ns = e.start_ns,
                  .end_ns = e.end_ns,
                  .clock = e.number,
                  .chunk = static_cast<std::int64_t>(value(*e.chunk)),
                  .bytes = e.bytes});
  };
}

}  // namespace poseidon
