// actors/routes/replanner.hpp
//
// Decides when other routes are worth a change, by the rates of links that nodes report while they train: arithmetic
// only, for protocol_selector. It changes rarely: a rate counts when a node has reported it four times in succession; a
// change has to save 5 % of an iteration by the forecast, and over what is left of the run twice the time that it pauses
// training for; changes pause training for less than a twentieth of the run's time, and each has to wait twice as long as
// the one before, up to 32 times.
//
// A rate that a node reads off its traffic is lower than the rate that a probe of the same line finds, by a factor that
// depends on the traffic. A node's first reading with new routes is taken to mean the rate for which they were chosen,
// if it is not far from it; later readings count in proportion.
#pragma once
#include "messages/ids.hpp"
#include "models/plan/route_choice.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

class replanner {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  struct proposal {
    std::vector<bool> factors;  ///< by load: whether the layer broadcasts factors
    std::string why;  ///< both rates, the layers that change and the time saved; for the user
  };

  /// `rates.product_s` is called as long as this object lives. `node_mbit_s`: measured out of a node when `factors` were
  /// chosen. Reported rates are compared to it, because a replay plans with scaled ones.
  replanner(std::vector<route_load> loads, route_rates rates, double node_mbit_s,
            std::vector<bool> factors);

  /// A node reports its rate. The slowest node counts, because all wait for it. After a proposal there is none before
  /// changed(). `probed`: timed by a bandwidth_probe; false: read off traffic.
  /// `clocks_left`: until the end of the run.
  std::optional<proposal> hear(worker_id from, double mbit_s, bool probed,
                               std::uint64_t clocks_left, time_point now);

  /// The proposed routes hold; training paused for `paused`.
  void changed(std::chrono::milliseconds paused, time_point now);

 private:
  /// Of the reports that confirm each other, in Mbit/s.
  struct rate_range {
    double least = 0, greatest = 0;
  };
  void note(worker_id from, double mbit_s, bool probed);
  [[nodiscard]] std::optional<rate_range> rate_now() const;
  /// What an iteration saves by other routes at that rate; 0: less than is worth a change.
  [[nodiscard]] double saved_ms(const std::vector<bool>& by, double mbit_s);
  [[nodiscard]] std::string describe(double mbit_s, const std::vector<bool>& factors,
                                     double gain) const;

  std::vector<route_load> loads_;
  route_rates rates_;
  double chosen_at_mbit_s_;
  double per_mbit_s_;  // the planner's rate for 1 Mbit/s of a node's
  std::vector<bool> factors_, proposed_;
  double proposed_at_mbit_s_ = 0;
  bool changing_ = false;
  std::optional<time_point> not_before_;
  int changes_ = 0;
  std::chrono::milliseconds paused_{
      1000};                              // training, by the last change; before the first: a guess
  using reports = std::array<double, 4>;  // the last ones, in Mbit/s; 0: none

  /// What a node has reported.
  struct node_rate {
    reports read{}, probed{};          ///< not comparable with each other
    std::optional<rate_range> counts;  ///< as a probe would find it
    double reads_as = 0;               ///< factor from a reading to that; 0: not known yet
  };
  std::map<worker_id, node_rate> heard_;
};

}  // namespace poseidon
