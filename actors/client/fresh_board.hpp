// actors/client/fresh_board.hpp
//
// Which versions of which parameters are here, for the threads of a program, which wait. The caller writes it. A thread that
// waits is woken for its own parameter alone, or when the run can bring it no more.
#pragma once
#include "models/ids.hpp"
#include "models/indexed.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

class fresh_board {
 public:
  explicit fresh_board(std::size_t parameters) : fresh_(parameters) {
    if (parameters > 0) at_version_[0] = parameters;
  }

  enum class answer { here, not_yet, no_gradient, failed };
  /// Waits until `version` is here or a later one is.  Returns  failed: error() says why it will not come.
  [[nodiscard]] answer wait(parameter_id parameter, std::uint64_t version,
                            std::chrono::duration<double> limit);
  /// What wait() would answer at once for these, in their order, up to the first one that is not here.
  [[nodiscard]] std::vector<answer> look(std::span<const parameter_id> parameters,
                                         std::uint64_t version) const;
  /// Which of these are at `version`: all that are, or the first that come within `limit`.
  struct arrival {
    std::size_t place = 0;  ///< among the parameters that were asked for
    answer is = answer::here;
  };
  /// Empty: none has come. Of those that fail only the first, and only where none is here.
  [[nodiscard]] std::vector<arrival> wait_for_some(std::span<const parameter_id> parameters,
                                                   std::uint64_t version,
                                                   std::chrono::duration<double> limit);
  /// Waits until `version` of all parameters is here. Never no_gradient.
  [[nodiscard]] answer wait_for_all(std::uint64_t version, std::chrono::duration<double> limit);
  [[nodiscard]] bool is_whole(std::uint64_t version) const;
  [[nodiscard]] std::string error() const;

  /// All threads may read `version` from now on. `nothing`: no worker had a gradient of it.
  void publish(parameter_id parameter, std::uint64_t version, bool nothing);
  /// A worker is lost, and what is newer than `version` is made once more.
  void go_back(std::uint64_t version);
  /// Another worker's program trains no clock from `version` on.
  void left(const std::string& worker, std::uint64_t version);
  /// The version that a worker left with, the least one, and that worker; empty: all are there.
  struct leaver {
    std::string worker;
    std::uint64_t version = 0;
  };
  [[nodiscard]] std::optional<leaver> first_to_leave() const;
  /// The run has failed; the first text stays.
  void fail(std::string text);

 private:
  struct state {
    std::uint64_t versions = 0;  // that have come: the newest is versions - 1
    bool nothing = false;        // in the newest
  };
  struct waiter {
    std::optional<parameter_id> parameter;  ///< empty: any
    std::uint64_t version = 0;
    bool wants_all = false;
    std::condition_variable woken;
  };
  void set(parameter_id parameter, state to);
  [[nodiscard]] bool has_all(std::uint64_t version) const {
    return at_version_.empty() || at_version_.begin()->first > version;
  }
  [[nodiscard]] std::optional<answer> answer_now(parameter_id parameter,
                                                 std::uint64_t version) const;
  template <class F>
  void wait_until(std::unique_lock<std::mutex>& lock, waiter& self,
                  std::chrono::duration<double> limit, F came);
  void wake_all();

  mutable std::mutex mutex_;
  by_id<parameter_id, state> fresh_;
  std::map<std::uint64_t, std::size_t> at_version_;  // by state::versions: how many parameters
  std::vector<waiter*> waiters_;
  std::optional<leaver> left_;
  std::string error_;
};

}  // namespace poseidon
