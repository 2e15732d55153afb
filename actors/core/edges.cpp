#include "actors/core/edges.hpp"

#include <map>
#include <set>
#include <tuple>

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
  tables_.push_back(table);
  return table;
}

std::vector<edge_book::row> edge_book::rows() const {
  const std::lock_guard lock(mutex_);
  std::map<std::uint64_t, const edge_table*> by_id;
  for (const auto& t : tables_) by_id[t->id()] = t.get();
  std::vector<row> out;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, std::size_t> places;
  for (const auto& t : tables_) {
    for (const auto* e = t->first(); e != nullptr; e = e->next.load(std::memory_order_acquire)) {
      const auto to = by_id.find(e->to);
      if (to == by_id.end()) continue;
      const auto& receiver = *to->second;
      const auto [place, fresh] =
          places.try_emplace({t->name(), receiver.name(), e->message}, out.size());
      if (fresh)
        out.push_back(
            {t->name(), t->type(), receiver.name(), receiver.type(), std::string(e->message)});
      out[place->second].count += e->count.load(std::memory_order_relaxed);
      out[place->second].bytes += e->bytes.load(std::memory_order_relaxed);
    }
  }
  return out;
}

std::vector<std::shared_ptr<const edge_table>> edge_book::tables(std::size_t first) const {
  const std::lock_guard lock(mutex_);
  if (first >= tables_.size()) return {};
  return {tables_.begin() + static_cast<std::ptrdiff_t>(first), tables_.end()};
}

std::vector<std::pair<std::string, std::string>> edge_book::actors() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, std::string>> out;
  std::set<std::string_view> seen;
  for (const auto& t : tables_)
    if (seen.insert(t->name()).second) out.emplace_back(t->name(), t->type());
  return out;
}

}  // namespace poseidon
