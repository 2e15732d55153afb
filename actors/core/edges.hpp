// actors/core/edges.hpp
//
// The measured actor graph: which actor has sent which message to which other one, how often, how many payload bytes.
// Each actor counts into its own edge_table (single writer, relaxed atomics, no lock on the sending path once an edge
// exists); telemetry reads them all at any time through the edge_book. A run whose views change for weeks holds no more than a new one:
// what was sent to actors that have ended is added up by their names, and the edges go.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace poseidon {

/// The bare name of a message type, "push_gradient", taken from the compiler.
template <class M>
constexpr std::string_view message_name() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr auto begin = text.find("M = ") + 4;
  constexpr auto end = text.find_first_of(";]", begin);
  constexpr auto full = text.substr(begin, end - begin);
  constexpr auto colon = full.rfind("::");
  return colon == std::string_view::npos ? full : full.substr(colon + 2);
}

/// What one actor has sent. Written by that actor alone.
class edge_table {
 public:
  struct edge {
    std::uint64_t number = 0;  ///< counted from 1, in the order of their first messages
    std::uint64_t to = 0;      ///< CAF's id of the receiver
    std::string_view message;
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> bytes{0};
    edge* next = nullptr;
    bool retired = false;  // by a reader: nobody asks for it any more
  };

  edge_table(std::string name, std::string type) : name_(std::move(name)), type_(std::move(type)) {}
  ~edge_table();
  edge_table(const edge_table&) = delete;
  edge_table& operator=(const edge_table&) = delete;

  /// Called by the owning actor only.
  void count(std::uint64_t to, std::string_view message, std::size_t bytes);

  /// A message of another actor was handled. Called by the owning actor only.
  void handle_one() {
    handled_.store(handled_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// What all edges that lead here have counted, minus this, is how many messages wait.
  [[nodiscard]] std::uint64_t handled() const { return handled_.load(std::memory_order_relaxed); }

  /// The owner has counted for the last time. Called once, when it terminates; a reader that sees ended() sees all counts.
  void end() { ended_.store(true, std::memory_order_release); }
  [[nodiscard]] bool ended() const { return ended_.load(std::memory_order_acquire); }

  /// f(edge) for each edge that has come after the one of this number and is not retired, the newest first; 0: for all. An edge stays
  /// where it is until it is retired. Returns  the number of the newest edge.
  template <class F>
  std::uint64_t for_each_since(std::uint64_t number, F f) const {
    const std::lock_guard lock(structure_);
    for (const auto* e = first_; e != nullptr && e->number > number; e = e->next)
      if (!e->retired) f(*e);
    return newest_;
  }
  /// f(edge) for each edge that is not retired. Those for which it returns true are: the owner removes them when it adds others. No reader
  /// may hold them.
  template <class F>
  void retire_if(F f) const {
    const std::lock_guard lock(structure_);
    for (auto* e = first_; e != nullptr; e = e->next)
      if (!e->retired && f(*e)) e->retired = true, ++retired_;
  }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& type() const { return type_; }
  [[nodiscard]] std::uint64_t id() const { return id_.load(std::memory_order_acquire); }
  void bind(std::uint64_t id) { id_.store(id, std::memory_order_release); }

 private:
  edge* add(std::uint64_t to, std::string_view message);

  std::string name_, type_;
  std::atomic<std::uint64_t> id_{0};
  /// Held by readers while they walk, and by the owner while it changes the list.
  mutable std::mutex structure_;
  edge* first_ = nullptr;  // the newest
  std::uint64_t newest_ = 0;
  mutable std::size_t retired_ = 0;  // edges of the list
  std::atomic<std::uint64_t> handled_{0};
  std::atomic<bool> ended_{false};
  // Of the owner, which finds edges here: a shard has one for each parameter, and uses them in turn.
  struct place {
    std::uint64_t to = 0;
    const char* message = nullptr;
    friend bool operator==(const place&, const place&) = default;
  };
  struct place_hash {
    std::size_t operator()(const place& p) const {
      return std::hash<const char*>{}(p.message) ^ (p.to * 0x9e3779b97f4a7c15u);
    }
  };
  std::unordered_map<place, edge*, place_hash> places_;
  edge* last_used_ = nullptr;  // often used again
};

/// All tables of one node. The counts of actors that have ended stay: fold() adds them up by name.
class edge_book {
 public:
  struct row {
    std::string from, from_type, to, to_type;
    std::string message;
    std::uint64_t count = 0, bytes = 0;
  };

  std::shared_ptr<edge_table> open(std::string name, std::string type);
  void bind(const std::shared_ptr<edge_table>& table, std::uint64_t actor_id) {
    table->bind(actor_id);
  }
  /// By names: actors that have borne one name, one after the other, are one row. Their counts are added.
  [[nodiscard]] std::vector<row> rows() const;
  /// The tables that are not folded, in the order in which their actors were spawned. `first`: without the first this many
  /// that were ever opened.
  [[nodiscard]] std::vector<std::shared_ptr<const edge_table>> tables(std::size_t first = 0) const;
  /// The living actors that have not handled all that the others have told them, with the number of these messages.
  [[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> backlog() const;
  /// Adds the counts of actors that have ended to those of their names and forgets their tables. Called by the one reader
  /// of tables(), when it has read their last counts.
  void fold(const std::vector<std::shared_ptr<const edge_table>>& ended);
  /// Adds what was sent to these folded actors, by CAF's ids, to the counts of their names, and retires the edges. Called by that reader when it
  /// holds none of them any more.
  void forget(const std::set<std::uint64_t>& ended);
  /// (name, type) of every actor ever spawned, each once, in the order of their first ones. Each newcomer's links bear another name: of those
  /// that have ended the last ones are listed, and the others are one "former network_link".
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> actors() const;

 private:
  struct actor {
    std::string name, type;
  };
  using names = std::tuple<std::string, std::string, std::string>;  // from, to, message
  /// By CAF's id, with the folded ones.
  [[nodiscard]] std::unordered_map<std::uint64_t, actor> all_actors() const;
  void add(const edge_table& from, const edge_table::edge& e, const actor& to);
  void note_ended_link(const std::string& name);
  void merge_link(const std::string& name);

  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<edge_table>> tables_;  // by number, counted from 0
  std::uint64_t opened_ = 0;
  std::vector<std::pair<std::string, std::string>> actors_;  // as actors() returns them
  std::set<std::string> known_names_;
  std::map<names, row> folded_;
  std::unordered_map<std::uint64_t, actor> ended_;  // folded actors that others may have sent to
  std::deque<std::string> ended_links_;             // names, each once
};

}  // namespace poseidon
