#include "actors/telemetry/activity.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

activity::activity(std::shared_ptr<edge_book> edges, std::shared_ptr<trace_log> trace)
    : book_(std::move(edges)), trace_(std::move(trace)) {}

void activity::opened(std::uint32_t peer, std::shared_ptr<const link_counters> counters) {
  const std::lock_guard lock(links_mutex_);
  links_.emplace_back(peer, std::move(counters));
}

traffic activity::carried() const {
  const std::lock_guard lock(links_mutex_);
  traffic sum;
  for (const auto& [peer, c] : links_) {
    sum.bytes_out += c->bytes_out.load(std::memory_order_relaxed);
    sum.bytes_in += c->bytes_in.load(std::memory_order_relaxed);
  }
  return sum;
}

node_report activity::take_new() {
  const std::lock_guard lock(mutex_);
  node_report r;
  r.first_name = static_cast<std::uint32_t>(names_.size());
  r.first_actor = static_cast<std::uint32_t>(actors_.size());
  r.first_edge = known_edges_;
  r.first_lane = known_lanes_;
  take_actors(r);
  take_spans(r);
  const std::lock_guard links(links_mutex_);
  for (const auto& [peer, c] : links_)
    r.links.push_back({peer, c->bytes_out.load(std::memory_order_relaxed),
                       c->bytes_in.load(std::memory_order_relaxed),
                       c->frames_out.load(std::memory_order_relaxed),
                       c->frames_in.load(std::memory_order_relaxed)});
  r.sent_ns = now_ns();
  return r;
}

std::uint32_t activity::name(const std::string& text, node_report& r) {
  const auto [at, fresh] = names_.try_emplace(text, static_cast<std::uint32_t>(names_.size()));
  if (fresh) r.names.emplace_back(text);
  return at->second;
}

std::uint32_t activity::lasting_name(std::string_view text, node_report& r) {
  const auto seen = texts_.find(text.data());
  if (seen != texts_.end() && seen->second.first == text.size()) return seen->second.second;
  const auto place = name(std::string(text), r);
  texts_[text.data()] = {text.size(), place};
  return place;
}

void activity::take_actors(node_report& r) {
  for (auto& table : book_->tables(actors_.size())) {
    if (table->id() == 0) break;  // being spawned: next time
    actor_of_id_[table->id()] = static_cast<std::uint32_t>(actors_.size());
    r.actors.push_back({name(table->name(), r), name(table->type(), r)});
    actors_.emplace_back().table = std::move(table);
  }
  for (std::uint32_t place = 0; place < actors_.size(); ++place) {
    auto& a = actors_[place];
    if (a.over) continue;
    // Handled before sent: what happens between the two readings makes a queue longer, never negative.
    if (const auto handled = a.table->handled(); handled != a.handled) {
      a.handled = handled;
      r.handled_by.push_back({place, handled});
    }
  }
  for (std::uint32_t place = 0; place < actors_.size(); ++place)
    if (!actors_[place].over) take_actor(actors_[place], place, r);
  book_->fold(std::exchange(over_, {}));
}

void activity::take_actor(known_actor& a, std::uint32_t place, node_report& r) {
  const bool ended = a.table->ended();  // before its counts, so that these are the last
  if (ended && !a.ended) r.ended.push_back(place);
  a.ended = ended;
  take_edges(a, place, r);
  if (const auto handled = a.table->handled(); ended && handled != a.handled) {
    a.handled = handled;
    r.handled_by.push_back({place, handled});
  }
  // A run whose routes change again and again does not take more and more time and memory.
  a.over = ended && a.strangers.empty();
  if (!a.over) return;
  a.edges = {};
  over_.push_back(std::move(a.table));
}

void activity::take_edges(known_actor& a, std::uint32_t place, node_report& r) {
  // New edges are put in front: what lies before the newest one known is new.
  const auto* front = a.table->first();
  for (const auto* e = front; e != a.newest; e = e->next.load(std::memory_order_acquire))
    a.strangers.push_back(e);
  a.newest = front;
  std::erase_if(a.strangers, [&](const edge_table::edge* e) {
    const auto to = actor_of_id_.find(e->to);
    if (to == actor_of_id_.end()) return false;
    a.edges.push_back({e, 0, known_edges_++});
    r.edges.push_back({place, to->second, lasting_name(e->message, r)});
    return true;
  });
  for (auto& e : a.edges) {
    const auto messages = e.edge->count.load(std::memory_order_relaxed);
    if (messages == e.messages) continue;
    e.messages = messages;
    r.counts.push_back({e.place, messages, e.edge->bytes.load(std::memory_order_relaxed)});
  }
}

void activity::take_spans(node_report& r) {
  trace_->take_new([&](std::size_t place, const std::string& lane, const trace_span& s) {
    if (place >= lane_of_place_.size()) lane_of_place_.resize(place + 1, ~std::uint32_t{0});
    auto& lane_number = lane_of_place_[place];
    if (lane_number == ~std::uint32_t{0}) {
      lane_number = known_lanes_++;
      r.lanes.push_back(lasting_name(lane, r));
    }
    r.spans.push_back({lane_number, lasting_name(s.name, r), lasting_name(to_string(s.phase), r),
                       static_cast<std::int32_t>(s.chunk), s.begin_ns, s.end_ns, s.clock, s.bytes});
  });
  if (r.spans.size() <= max_report_spans) return;
  // By their ends, so that no lane loses more of its time than another.
  const auto out = r.spans.size() - max_report_spans;
  std::nth_element(r.spans.begin(), r.spans.begin() + static_cast<std::ptrdiff_t>(out),
                   r.spans.end(), [](auto& a, auto& b) { return a.end_ns < b.end_ns; });
  r.spans.erase(r.spans.begin(), r.spans.begin() + static_cast<std::ptrdiff_t>(out));
  r.spans_left_out = out;
}

}  // namespace poseidon
