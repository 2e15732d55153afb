// actors/training/output_reports.hpp
//
// Values of net outputs, for the user: summed over replicas, micro-batches and test passes on
// each node, then over the workers on worker 0. No mailbox here: solver has one of each class.
#pragma once
#include "actors/core/progress.hpp"
#include "messages/frames.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace poseidon {

/// The objective: outputs times their weights.
[[nodiscard]] double weighted_loss(const std::vector<double>& values,
                                   const std::vector<output_value>& outputs);

/// Sums the outputs of a clock over its passes on this node.
class output_sums {
 public:
  output_sums() = default;
  output_sums(std::size_t values, std::size_t passes) : values_(values), passes_(passes) {}

  /// Adds `weight` times values [first, first + more.size()) of one pass.
  /// Returns  the sums once every value of every pass of that clock has arrived.
  std::optional<std::vector<double>> add(std::uint64_t clock, std::size_t first,
                                         const std::vector<float>& more, double weight = 1);

 private:
  struct entry {
    std::vector<double> sums;
    std::size_t seen = 0;
  };
  std::size_t values_ = 0, passes_ = 0;
  std::map<std::uint64_t, entry> clocks_;
};

/// Caffe's smoothed loss: the mean over the last `window` iterations.
class smoothed_loss {
 public:
  explicit smoothed_loss(std::size_t window = 1) : window_(window == 0 ? 1 : window) {}
  double add(double loss);

 private:
  std::size_t window_;
  std::deque<double> last_;
};

/// Worker 0's board: one report per worker, clock and net.
class report_board {
 public:
  explicit report_board(std::size_t workers = 1) : workers_(workers) {}

  struct merged {
    std::vector<double> means;  ///< sums in worker order, over all passes
    std::uint64_t passes = 0;
    std::uint64_t images = 0;  ///< trained by all workers since the view began
    /// Sums over all workers, see worker_report.
    std::uint64_t communication_ns = 0, exposed_ns = 0;
  };
  /// Returns  the merged values once every worker has reported. A worker reports the clocks of a net in rising order, so
  /// a clock that not all have reported when a later one is complete never will be: its reports are dropped, and so are
  /// those that come later still.
  std::optional<merged> add(worker_id from, const frames::worker_report& r);
  /// Clocks that some workers have reported and others not.
  [[nodiscard]] std::size_t incomplete() const;

 private:
  struct net_reports {
    std::map<std::uint64_t, std::map<std::uint32_t, frames::worker_report>> open;  // by clock
    std::optional<std::uint64_t> complete;                                         // the last clock
  };
  std::size_t workers_;
  std::map<std::int32_t, net_reports> nets_;
};

}  // namespace poseidon
