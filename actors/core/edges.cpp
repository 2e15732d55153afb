#include "actors/core/edges.hpp"

namespace poseidon {

edge_table::~edge_table() {
  for (auto* e = first_.load(); e != nullptr;) {
    auto* next = e->next.load();
    delete e;
    e = next;
  }
}

void edge_table::count(std::uint64_t to, std::string_view message, std::size_t bytes) {
  auto same = [&](const edge* e) { return e->to == to && e->message.data() == message.data(); };
  auto* found = last_used_;
  if (found == nullptr || !same(found)) {
    for (found = first_.load(std::memory_order_relaxed); found != nullptr && !same(found);)
      found = found->next.load(std::memory_order_relaxed);
  }
  if (found == nullptr) {
    found = new edge;
    found->to = to;
    found->message = message;
    found->next.store(first_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    first_.store(found, std::memory_order_release);
  }
  last_used_ = found;
  // Single writer: a load and a store are enough and cheaper than a locked add.
  found->count.store(found->count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  found->bytes.store(found->bytes.load(std::memory_order_relaxed) + bytes,
                     std::memory_order_relaxed);
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
  for (const auto* e = t.first(); e != nullptr; e = e->next.load(std::memory_order_acquire)) f(*e);
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

void edge_book::fold(const std::vector<std::shared_ptr<const edge_table>>& ended) {
  if (ended.empty()) return;
  const std::lock_guard lock(mutex_);
  const auto by_id = all_actors();
  std::set<const edge_table*> gone;
  for (const auto& t : ended) {
    gone.insert(t.get());
    for_each_edge(*t, [&](const edge_table::edge& e) {
      const auto to = by_id.find(e.to);
      if (to == by_id.end()) return;
      std::string message(e.message);
      auto& r = folded_[{t->name(), to->second.name, message}];
      r.from = t->name(), r.from_type = t->type();
      r.to = to->second.name, r.to_type = to->second.type;
      r.message = std::move(message);
      r.count += e.count.load(std::memory_order_relaxed);
      r.bytes += e.bytes.load(std::memory_order_relaxed);
    });
    ended_[t->id()] = {t->name(), t->type()};
  }
  std::erase_if(tables_, [&](const auto& t) { return gone.count(t.second.get()) != 0; });
  constexpr std::size_t few = 256;
  if (ended_.size() > 2 * ended_sent_ + few) forget_unsent();
}

/// Forgets the ended actors to which no actor of the tables has sent anything.
void edge_book::forget_unsent() {
  std::set<std::uint64_t> sent_to;
  for (const auto& [number, t] : tables_)
    for_each_edge(*t, [&](const edge_table::edge& e) { sent_to.insert(e.to); });
  std::erase_if(ended_, [&](const auto& e) { return sent_to.count(e.first) == 0; });
  ended_sent_ = ended_.size();
}

std::vector<std::pair<std::string, std::string>> edge_book::actors() const {
  const std::lock_guard lock(mutex_);
  return actors_;
}

}  // namespace poseidon
