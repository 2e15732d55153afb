// actors/core/progress.hpp - what a run reports to its user; implemented by the app (a terminal, a plain log, a test).
#pragma once
#include "actors/core/long_task.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace poseidon {

/// One output value of a net, as the solver names it: "loss", or "prob[3]" in a larger blob.
struct output_value {
  std::string name;
  float loss_weight = 0;
};

/// Bytes that this node's links have carried until now, headers included.
struct traffic {
  std::uint64_t bytes_out = 0, bytes_in = 0;
};

/// Called by the solver of worker 0 (values, averaged over all workers), by that of every node (steps), by node,
/// checkpointer and links' handshakes (lines, tasks), from several threads at the same time. No call may block for long.
class progress {
 public:
  virtual ~progress() = default;

  struct iteration {
    std::uint64_t clock = 0, last_clock = 0;
    double loss = 0;              ///< smoothed over average_loss iterations
    std::vector<double> outputs;  ///< by output value of the train net
    double learning_rate = 0;
    std::uint64_t images = 0;  ///< trained by all workers since the run began
    /// Since the run began, summed over workers: the time in which some layer's update was under way, and the part of it
    /// in which streams waited.
    std::uint64_t communication_ns = 0, exposed_ns = 0;
  };
  virtual void trained(const iteration& i, const std::vector<output_value>& outputs) = 0;

  /// How far this node is, at every iteration whether it is displayed or not.
  struct step {
    std::uint64_t done = 0, total = 0;          ///< iterations, those before a resumed run included
    std::uint64_t images = 0;                   ///< trained by all workers since the run began
    std::uint64_t bytes_out = 0, bytes_in = 0;  ///< on this node's links since the run began
  };
  /// When the first iteration begins, and when an iteration's values have come.
  virtual void stepped(const step& s) { (void)s; }
  virtual void tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
                      const std::vector<output_value>& outputs) = 0;
  virtual void snapshot(std::uint64_t clock, const std::string& path, const std::string& error) = 0;
  /// Who takes part from an iteration on, once training has gone on with it on this node.
  struct view {
    std::uint64_t epoch = 0, first_clock = 0, first_sample = 0;
    std::uint64_t samples = 0;  ///< of an iteration, where they stay the same in every view; else 0
    std::vector<std::uint32_t> seats;  ///< of the members, by worker
    /// "worker 2 (10.0.0.7:7600) joined", "routes changed"; empty: it is the first view that this node takes part in.
    std::string changed;
    std::string why;                            ///< of other routes; may be empty
    std::uint64_t paused_ms = 0;                ///< this node's training, for the change
    std::vector<std::uint32_t> witnesses = {};  ///< seats
  };
  virtual void viewed(const view& v) { note(describe(v)); }
  /// "view 3: worker 2 (10.0.0.7:7600) joined; 3 nodes train from iteration 120 on, 64 samples an iteration, with 1 witness, after a
  /// pause of 41 ms"
  [[nodiscard]] static std::string describe(const view& v);
  /// How the run's results relate to those of one node: at the start, and where that changes.
  struct promise {
    std::string text;  ///< "results: ..."; empty: there is nothing to say
    bool bit_equal = false;
    /// What nodes differ in, "oneDNN", and who has which: "2.6.3", seats.
    struct difference {
      std::string what;
      std::vector<std::pair<std::string, std::vector<std::uint32_t>>> who;
      friend bool operator==(const difference&, const difference&) = default;
    };
    std::vector<difference> differences;
  };
  virtual void promised(const promise& p) { note(p.text); }
  virtual void note(const std::string& line) = 0;
  /// A fault with which the run continues. Shown at every log level.
  virtual void warning(const std::string& line) { note(line); }
  /// A line for finding faults in a cluster (--log-level debug).
  virtual void detail(const std::string& line) { (void)line; }
  /// Something that may take long, shown while the result lives. The result may outlive this object.
  [[nodiscard]] virtual std::shared_ptr<void> working(long_task task) {
    (void)task;
    return nullptr;
  }
};

}  // namespace poseidon
