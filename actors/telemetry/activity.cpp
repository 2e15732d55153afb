#include "actors/telemetry/activity.hpp"

#include "actors/core/actor_names.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace poseidon {

activity::activity(std::shared_ptr<edge_book> edges, std::shared_ptr<trace_log> trace)
    : book_(std::move(edges)), trace_(std::move(trace)) {}

namespace {

void add(const link_counters& c, traffic& to) {
  to.bytes_out += c.bytes_out.load(std::memory_order_relaxed);
  to.bytes_in += c.bytes_in.load(std::memory_order_relaxed);
}

}  // namespace

void activity::opened(std::uint32_t peer, std::shared_ptr<const link_counters> counters) {
  constexpr std::size_t listed = 64;
  const std::lock_guard lock(links_mutex_);
  if (links_.size() >= listed)
    std::erase_if(links_, [&](const auto& l) {
      if (l.second.use_count() > 1) return false;  // its link counts on
      add(*l.second, former_);
      return true;
    });
  links_.emplace_back(peer, std::move(counters));
}

traffic activity::carried() const {
  const std::lock_guard lock(links_mutex_);
  auto sum = former_;
  for (const auto& [peer, c] : links_) add(*c, sum);
  return sum;
}

node_report activity::take_new() {
  const std::lock_guard lock(mutex_);
  node_report r;
  r.first_name = static_cast<std::uint32_t>(names_.size());
  r.first_actor = static_cast<std::uint32_t>(actors_.size());
  r.first_edge = static_cast<std::uint32_t>(edge_sums_.size());
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
  all_bound_ = false;
  // First those that have ended, so that their places are free for the new ones.
  for (std::uint32_t place = 0; place < actors_.size(); ++place)
    if (actors_[place].table && actors_[place].table->ended()) take_actor(place, r);
  all_bound_ = true;
  for (auto& table : book_->tables(tables_seen_)) {
    all_bound_ = table->id() != 0;
    if (!all_bound_) break;  // being spawned: next time
    ++tables_seen_;
    find_place(std::move(table), r);
  }
  // Handled before sent: what happens between the two readings makes a queue longer, never negative.
  for (auto& a : actors_) {
    if (!a.table) continue;
    auto& i = instances_.at(a.table->id());
    i.handled = a.table->handled();
    count_handled(i);
  }
  for (std::uint32_t place = 0; place < actors_.size(); ++place)
    if (actors_[place].table) take_actor(place, r);
  for (std::uint32_t place = 0; place < actors_.size(); ++place) {
    auto& a = actors_[place];
    if (a.handled != a.reported || a.is_new) r.handled_by.push_back({place, a.handled});
    a.reported = a.handled;
    a.is_new = false;
  }
  forget_retired();
  book_->fold(std::exchange(over_, {}));
}

namespace {

/// Links bear the number of a node, and each newcomer has another one.
std::string name_of_place(const edge_table& table) {
  auto name = parse_actor_name(table.name());
  name.worker.reset();
  return to_string(name);
}

}  // namespace

/// Gives the actor the place of one of its name that is over, or of another link, or a new one.
void activity::find_place(std::shared_ptr<const edge_table> table, node_report& r) {
  auto& free = free_places_[name_of_place(*table)];
  std::uint32_t place = 0;
  if (free.empty()) {
    place = static_cast<std::uint32_t>(actors_.size());
    actors_.emplace_back();
    r.actors.push_back({name(table->name(), r), name(table->type(), r)});
  } else {
    auto same = std::find_if(free.begin(), free.end(),
                             [&](auto p) { return actors_[p].name == table->name(); });
    if (same == free.end()) --same;
    place = *same;
    free.erase(same);
    std::erase(r.ended, place);
    if (actors_[place].name != table->name()) rename(place, table->name(), r);
  }
  instances_[table->id()] = {place};
  auto& a = actors_[place];
  a.name = table->name();
  a.table = std::move(table);
  a.is_new = true;
  a.ended = false;
  a.newest = 0;
}

void activity::rename(std::uint32_t place, const std::string& to, node_report& r) {
  r.renamed.push_back({place, name(to, r)});
  // What it sends is added to what those before it have sent: else its receivers would seem to have handled more than they got.
  for (const auto& [key, edge] : edge_places_)
    if (std::get<1>(key) == place) edge_sums_[edge] = {};
  actors_[place].handled = actors_[place].reported = 0;
}

void activity::take_actor(std::uint32_t place, node_report& r) {
  auto& a = actors_[place];
  const bool ended = a.table->ended();  // before its counts, so that these are the last
  if (ended && !a.ended) r.ended.push_back(place);
  a.ended = ended;
  take_edges(place, r);
  if (!ended) return;
  auto& i = instances_.at(a.table->id());
  i.handled = a.table->handled();
  i.over = a.strangers.empty();
  count_handled(i);
  if (!i.over) return;
  // A run whose routes change again and again does not take more and more time and memory.
  a.edges = {};
  free_places_[name_of_place(*a.table)].push_back(place);
  over_.push_back(std::move(a.table));
}

/// What an actor that is over has left in its mailbox counts as handled: its successor does not find it there.
void activity::count_handled(instance& i) {
  const auto counted = i.over ? std::max(i.sent, i.handled) : i.handled;
  actors_[i.place].handled += counted - i.counted;
  i.counted = counted;
}

void activity::take_edges(std::uint32_t place, node_report& r) {
  auto& a = actors_[place];
  a.newest = a.table->for_each_since(a.newest, [&](const auto& e) { a.strangers.push_back({&e}); });
  std::erase_if(a.strangers, [&](stranger& s) {
    const auto to = instances_.find(s.edge->to);
    // Every table is opened before its actor lives: the receiver was forgotten, or belongs to no table.
    if (to == instances_.end()) return std::exchange(s.was_there, true) && all_bound_;
    const edge_key key{place, to->second.place, lasting_name(s.edge->message, r)};
    a.edges.push_back({s.edge, 0, 0, edge_place(key, r)});
    return true;
  });
  for (auto& e : a.edges) {
    const auto messages = e.edge->count.load(std::memory_order_relaxed);
    if (messages == e.messages) continue;
    const auto bytes = e.edge->bytes.load(std::memory_order_relaxed);
    auto& sum = edge_sums_[e.place];
    sum.messages += messages - e.messages;
    sum.bytes += bytes - e.bytes;
    auto& to = instances_.at(e.edge->to);
    to.sent += messages - e.messages;
    if (to.over) count_handled(to);
    e.messages = messages;
    e.bytes = bytes;
    r.counts.push_back({e.place, sum.messages, sum.bytes});
  }
}

std::uint32_t activity::edge_place(const edge_key& key, node_report& r) {
  const auto [at, fresh] =
      edge_places_.try_emplace(key, static_cast<std::uint32_t>(edge_sums_.size()));
  if (fresh) {
    edge_sums_.emplace_back();
    r.edges.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key)});
  }
  return at->second;
}

/// Forgets the actors that were over before this call, in which all edges to them have been read once more.
void activity::forget_retired() {
  const std::set<std::uint64_t> gone(retired_.begin(), retired_.end());
  for (auto& a : actors_)
    if (a.table && !gone.empty())
      std::erase_if(a.edges, [&](const auto& e) { return gone.count(e.edge->to) != 0; });
  for (const auto id : gone) instances_.erase(id);
  book_->forget(gone);
  retired_.clear();
  for (const auto& table : over_) retired_.push_back(table->id());
}

void activity::take_spans(node_report& r) {
  trace_->take_new([&](std::size_t place, const std::string& lane, const trace_span& s) {
    if (place >= lane_of_place_.size()) lane_of_place_.resize(place + 1, ~std::uint32_t{0});
    auto& lane_number = lane_of_place_[place];
    if (lane_number == ~std::uint32_t{0}) {
      lane_number = known_lanes_++;
      r.lanes.push_back(lasting_name(lane, r));
    }
    r.spans.push_back({.lane = lane_number,
                       .name = lasting_name(s.name, r),
                       .phase = lasting_name(to_string(s.phase), r),
                       .chunk = static_cast<std::int32_t>(s.chunk),
                       .begin_ns = s.begin_ns,
                       .end_ns = s.end_ns,
                       .clock = s.clock,
                       .bytes = s.bytes});
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
