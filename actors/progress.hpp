// actors/progress.hpp - what a run tells its user; implemented by the app (a terminal, a plain log, a test).
#pragma once
#include "actors/reports.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace poseidon {

/// Called by the solver of worker 0 (values, averaged over all workers), by node, checkpointer and links'
/// handshakes (lines), from several threads at the same time.
class progress {
 public:
  virtual ~progress() = default;

  struct iteration {
    std::uint64_t clock = 0, last_clock = 0;
    double loss = 0;              ///< smoothed over average_loss iterations
    std::vector<double> outputs;  ///< by output value of the train net
    double learning_rate = 0;
    std::uint64_t images = 0;  ///< trained by all workers since the run began
    /// Summed over workers, since the run began: some layer's update was under way; for that streams stood still.
    std::uint64_t communication_ns = 0, exposed_ns = 0;
  };
  virtual void trained(const iteration& i, const std::vector<output_value>& outputs) = 0;
  virtual void tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
                      const std::vector<output_value>& outputs) = 0;
  virtual void snapshot(std::uint64_t clock, const std::string& path, const std::string& error) = 0;
  virtual void note(const std::string& line) = 0;
  /// What only somebody who looks for a fault in a cluster wants to read (--log-level debug).
  virtual void detail(const std::string& line) { (void)line; }
};

}  // namespace poseidon
