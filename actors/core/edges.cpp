#include "actors/core/edges.hpp"

#include "actors/core/actor_names.hpp"

#include <algorithm>

namespace poseidon {

edge_table::~edge_table() {
  for (auto* e = first_; e != nullptr;) delete std::exchange(e, e->next);
}

void edge_table::count(std::uint64_t to, std::string_view message, std::size_t bytes) {
  auto* found = last_used_;
  if (found == nullptr || found->to != to || found->message.data() != message.data()) {
    const auto known = places_.find({to, message.data()});
    found = known != places_.end() ? known->second : add(to, message);
    last_used_ = found;
  }
  // Single writer: a load and a store are enough and cheaper than a locked add.
  found->count.store(found->count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  found->bytes.store(found->bytes.load(std::memory_order_relaxed) + bytes,
                     std::memory_order_relaxed);
}

edge_table::edge* edge_table::add(std::uint64_t to, std::string_view message) {
  constexpr std::size_t few = 32;
  auto* fresh = new edge;
  const std::lock_guard lock(structure_);
  if (retired_ >= few) {
    for (auto** place = &first_; *place != nullptr;) {
      if (!(*place)->retired) {
        place = &(*place)->next;
        continue;
      }
      places_.erase({(*place)->to, (*place)->message.data()});
      delete std::exchange(*place, (*place)->next);
    }
    retired_ = 0;
  }
  fresh->number = ++newest_;
  fresh->to = to;
  fresh->message = message;
  fresh->next = std::exchange(first_, fresh);
  places_[{to, message.data()}] = fresh;
  return fresh;
}

std::shared_ptr<edge_table> edge_book::open(std::string name, std::string type) {
  auto table = std::make_shared<edge_table>(std::move(name), std::move(type));
  const std::lock_guard lock(mutex_);
  tables_.emplace(opened_++, table);
  if (known_names_.insert(table->name()).second) actors_.emplace_back(table->name(), table->type());
  return table;
}

namespace {

template <class F>
void for_each_edge(const edge_table& t, F f) {
  (void)t.for_each_since(0, std::move(f));
}

}  // namespace

std::unordered_map<std::uint64_t, edge_book::actor> edge_book::all_actors() const {
  auto out = ended_;
  for (const auto& [number, t] : tables_) out[t->id()] = {t->name(), t->type()};
  return out;
}

std::vector<edge_book::row> edge_book::rows() const {
  const std::lock_guard lock(mutex_);
  const auto by_id = all_actors();
  std::vector<row> out;
  std::map<names, std::size_t> places;
  for (const auto& [key, r] : folded_) {
    places[key] = out.size();
    out.push_back(r);
  }
  for (const auto& [number, t] : tables_)
    for_each_edge(*t, [&, &t = t](const edge_table::edge& e) {
      const auto to = by_id.find(e.to);
      if (to == by_id.end()) return;
      const std::string message(e.message);
      const auto [place, fresh] =
          places.try_emplace({t->name(), to->second.name, message}, out.size());
      if (fresh) out.push_back({t->name(), t->type(), to->second.name, to->second.type, message});
      out[place->second].count += e.count.load(std::memory_order_relaxed);
      out[place->second].bytes += e.bytes.load(std::memory_order_relaxed);
    });
  return out;
}

std::vector<std::shared_ptr<const edge_table>> edge_book::tables(std::size_t first) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const edge_table>> out;
  for (auto t = tables_.lower_bound(first); t != tables_.end(); ++t) out.push_back(t->second);
  return out;
}

std::vector<std::pair<std::string, std::uint64_t>> edge_book::backlog() const {
  const auto all = tables();
  std::unordered_map<std::uint64_t, std::uint64_t> told;  // messages, by receiver
  for (const auto& t : all)
    for_each_edge(*t, [&](const edge_table::edge& e) {
      told[e.to] += e.count.load(std::memory_order_relaxed);
    });
  std::vector<std::pair<std::string, std::uint64_t>> out;
  for (const auto& t : all)
    if (const auto handled = t->handled(); !t->ended() && told[t->id()] > handled)
      out.emplace_back(t->name(), told[t->id()] - handled);
  return out;
}

void edge_book::add(const edge_table& from, const edge_table::edge& e, const actor& to) {
  std::string message(e.message);
  auto& r = folded_[{from.name(), to.name, message}];
  r.from = from.name(), r.from_type = from.type();
  r.to = to.name, r.to_type = to.type;
  r.message = std::move(message);
  r.count += e.count.load(std::memory_order_relaxed);
  r.bytes += e.bytes.load(std::memory_order_relaxed);
}

void edge_book::fold(const std::vector<std::shared_ptr<const edge_table>>& ended) {
  if (ended.empty()) return;
  const std::lock_guard lock(mutex_);
  const auto by_id = all_actors();
  std::set<const edge_table*> gone;
  for (const auto& t : ended) {
    gone.insert(t.get());
    for_each_edge(*t, [&](const edge_table::edge& e) {
      const auto to = by_id.find(e.to);
      if (to != by_id.end()) add(*t, e, to->second);
    });
    ended_[t->id()] = {t->name(), t->type()};
  }
  std::erase_if(tables_, [&](const auto& t) { return gone.count(t.second.get()) != 0; });
}

void edge_book::forget(const std::set<std::uint64_t>& ended) {
  if (ended.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const auto& [number, t] : tables_)
    t->retire_if([&, &t = t](const edge_table::edge& e) {
      const auto to = ended_.find(e.to);
      if (to == ended_.end() || ended.count(e.to) == 0) return false;
      add(*t, e, to->second);
      return true;
    });
  for (const auto id : ended) {
    const auto a = ended_.find(id);
    if (a == ended_.end()) continue;
    if (parse_actor_name(a->second.name).worker) note_ended_link(a->second.name);
    ended_.erase(a);
  }
}

void edge_book::note_ended_link(const std::string& name) {
  constexpr std::size_t listed = 64;
  std::erase(ended_links_, name);
  ended_links_.push_back(name);
  if (ended_links_.size() <= listed) return;
  const auto oldest = std::move(ended_links_.front());
  ended_links_.pop_front();
  const bool lives = std::any_of(tables_.begin(), tables_.end(),
                                 [&](const auto& t) { return t.second->name() == oldest; });
  if (!lives) merge_link(oldest);  // else it is noted again when it ends
}

/// What the link of this name has sent and got is from now on that of all former ones.
void edge_book::merge_link(const std::string& name) {
  auto former = parse_actor_name(name);
  former.worker.reset();
  former.kind = "former " + former.kind;
  const auto general = to_string(former);
  std::map<names, row> rest;
  for (auto& [key, r] : std::exchange(folded_, {})) {
    if (r.from == name) r.from = general;
    if (r.to == name) r.to = general;
    auto [at, fresh] = rest.try_emplace({r.from, r.to, r.message}, r);
    if (fresh) continue;
    at->second.count += r.count;
    at->second.bytes += r.bytes;
  }
  folded_ = std::move(rest);
  const auto listed =
      std::find_if(actors_.begin(), actors_.end(), [&](const auto& a) { return a.first == name; });
  if (listed == actors_.end()) return;
  known_names_.erase(name);
  if (known_names_.insert(general).second)
    listed->first = general;
  else
    actors_.erase(listed);
}

std::vector<std::pair<std::string, std::string>> edge_book::actors() const {
  const std::lock_guard lock(mutex_);
  return actors_;
}

}  // namespace poseidon
