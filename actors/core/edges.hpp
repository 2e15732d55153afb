// actors/core/edges.hpp
//
// The measured actor graph: which actor has sent which message to which other one, how often, how many payload bytes.
// Each actor counts into its own edge_table (single writer, relaxed atomics, no lock on the sending path once an edge
// exists); telemetry reads them all at any time through the edge_book.
#pragma once
#include <atomic>
#include <cstdint>
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
    std::uint64_t to = 0;  ///< CAF's id of the receiver
    std::string_view message;
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> bytes{0};
    std::atomic<edge*> next{nullptr};
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

  [[nodiscard]] const edge* first() const { return first_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& type() const { return type_; }
  [[nodiscard]] std::uint64_t id() const { return id_.load(std::memory_order_acquire); }
  void bind(std::uint64_t id) { id_.store(id, std::memory_order_release); }

 private:
  std::string name_, type_;
  std::atomic<std::uint64_t> id_{0};
  std::atomic<edge*> first_{nullptr};
  std::atomic<std::uint64_t> handled_{0};
  std::atomic<bool> ended_{false};
  edge* last_used_ = nullptr;  // of the owner: the same edge is often used again
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
  /// (name, type) of every actor ever spawned, each once, in the order of their first ones.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> actors() const;

 private:
  struct actor {
    std::string name, type;
  };
  using names = std::tuple<std::string, std::string, std::string>;  // from, to, message
  /// By CAF's id, with the folded ones.
  [[nodiscard]] std::unordered_map<std::uint64_t, actor> all_actors() const;
  void forget_unsent();

  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<edge_table>> tables_;  // by number, counted from 0
  std::uint64_t opened_ = 0;
  std::vector<std::pair<std::string, std::string>> actors_;  // as actors() returns them
  std::set<std::string> known_names_;
  std::map<names, row> folded_;
  std::unordered_map<std::uint64_t, actor> ended_;  // folded actors that others may have sent to
  std::size_t ended_sent_ = 0;                      // size of ended_ after forget_unsent()
};

}  // namespace poseidon
