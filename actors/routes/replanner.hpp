// actors/routes/replanner.hpp
//
// When other routes are worth a change, by what nodes tell of their links while they train: the arithmetic only;
// protocol_selector asks it. It is slow to leave what holds: a rate counts when a node has told it twice in a row, a
// change has to save 5 % of an iteration by the forecast, and the time that changes stand still stays below a
// twentieth of the run's. What a node reads off its traffic is lower than what a probe of the same line finds, by how
// much depends on the traffic: its first reading with new routes, if it is not far from the rate that they were chosen
// for, is taken to mean that rate, and what it reads later is in proportion.
#pragma once
#include "messages/ids.hpp"
#include "models/plan/route_choice.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

class replanner {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  struct proposal {
    std::vector<bool> factors;  ///< by load: who broadcasts factors
    std::string why;  ///< the rate before and now, who moves, and what that saves; for the user
  };

  /// `rates`: with a product_s that lasts. `node_mbit_s`: out of a node, as measured when `factors` were chosen; what
  /// nodes tell is in proportion to it (a replay's rates stand for others).
  replanner(std::vector<route_load> loads, route_rates rates, double node_mbit_s,
            std::vector<bool> factors);

  /// The slowest node counts: all wait for it. After a proposal there is none before changed().
  /// `probed`: timed as the rate was that routes were chosen for; false: read off traffic.
  std::optional<proposal> told(worker_id from, double mbit_s, bool probed, time_point now);

  /// What was proposed holds, after everybody has stood still for `stood`.
  void changed(std::chrono::milliseconds stood, time_point now);

 private:
  [[nodiscard]] std::optional<double> rate_now() const;
  [[nodiscard]] std::string describe(double mbit_s, const std::vector<bool>& factors,
                                     double gain) const;

  std::vector<route_load> loads_;
  route_rates rates_;
  double chosen_at_mbit_s_;
  double per_mbit_s_;  // the planner's rate for each of a node's
  std::vector<bool> factors_, proposed_;
  double proposed_at_mbit_s_ = 0;
  bool changing_ = false;
  std::optional<time_point> not_before_;
  struct told_rate {
    double last_read = 0, last_probed = 0;  ///< they do not compare
    std::optional<double> counts;           ///< in the probe's terms
    double reads_as = 0;                    ///< that for each of its own; 0: not known yet
  };
  std::map<worker_id, told_rate> told_;
};

}  // namespace poseidon
