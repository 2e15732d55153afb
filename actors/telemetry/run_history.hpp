// actors/telemetry/run_history.hpp
//
// The curves of a run: the values of display intervals and test phases, from the first on, and the newest lines of the
// log. Stands between the solver and the display and hands everything on. A page that is opened in the middle of a run
// shows its beginning. Of a long run every second, fourth, ... interval and test phase is kept. A reader makes its text
// from a copy that shares what is kept, so training never waits for a text.
#pragma once
#include "actors/core/progress.hpp"
#include "actors/telemetry/pauses.hpp"
#include "actors/telemetry/thinned_list.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

class run_history : public progress {
 public:
  struct point {
    std::uint64_t clock = 0;
    double seconds = 0;  ///< since the first point
    double loss = 0, learning_rate = 0;
    /// Over a quarter of a second at least, without test phases; 0 for the first.
    double images_s = 0;
    /// Share of the communication since the point before for which no stream waited; -1: there was none.
    double hidden = -1;
    std::vector<double> outputs;
  };
  struct test {
    std::size_t net = 0;
    std::uint64_t clock = 0;
    double seconds = 0;
    std::vector<double> means;
    std::vector<std::string> names;
  };
  struct line {
    std::uint64_t number = 0;  ///< counts all lines
    double seconds = 0;
    std::string text;
    bool bad = false;
  };
  /// From `clock` on so many nodes train.
  struct view_mark {
    std::uint64_t clock = 0;
    double seconds = 0;
    std::size_t nodes = 0;
    std::string changed;  ///< progress::view's
  };

  /// `next` may be null. `nodes`: with which the run begins; a single node has no communication to hide.
  run_history(std::shared_ptr<progress> next, std::size_t nodes);

  void trained(const iteration& i, const std::vector<output_value>& outputs) override;
  void tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
              const std::vector<output_value>& outputs) override;
  void snapshot(std::uint64_t clock, const std::string& path, const std::string& error) override;
  void stepped(const step& s) override;
  void viewed(const view& v) override;
  void promised(const promise& p) override;
  void note(const std::string& line) override;
  void warning(const std::string& line) override;
  void detail(const std::string& line) override;
  [[nodiscard]] std::shared_ptr<void> working(long_task task) override;
  /// What this node's links have carried so far. Called several times a second; thinned as the run grows longer.
  void carried(std::uint64_t bytes_out, std::uint64_t bytes_in);
  /// None before the first display interval.
  [[nodiscard]] std::optional<point> newest() const;
  struct values {
    std::optional<point> training;                          ///< as newest()
    std::shared_ptr<const std::vector<std::string>> names;  ///< of its outputs
    std::map<std::size_t, test> tests;                      ///< the newest, by test net
  };
  [[nodiscard]] values newest_values() const;
  /// A last line of the log: how the run ended.
  void ended(const std::string& error);

  /// What training pauses for now.
  [[nodiscard]] std::optional<pauses::work> paused_for() const { return pauses_.under_way(); }

  struct traffic {
    double seconds = 0;
    std::uint64_t out = 0, in = 0;
  };
  /// How much a reader has read; the next read begins there.
  struct place {
    std::uint64_t points = 0, tests = 0, lines = 0, views = 0;
    double traffic_s = -1;
  };
  /// What is kept at one moment. It stays as it is while the run goes on.
  struct copy {
    std::uint64_t last_clock = 0;
    std::shared_ptr<const std::vector<std::string>> names;  ///< of the outputs
    thinned_list<point>::copy points;
    thinned_list<test>::copy tests;
    std::vector<std::shared_ptr<const line>> lines;  ///< since `from`
    std::vector<traffic> traffics;                   ///< since `from`
    std::vector<view_mark> views;                    ///< since `from`
    std::optional<double> left_s;  ///< at the run's mean rate, without test phases
    place end;
  };
  [[nodiscard]] copy now(const place& from) const;

  /// {"last_clock":..,"left_s":..,"outputs":[names],"points":[[clock,s,loss,lr,images_s,hidden,outputs...]],
  ///  "tests":[{..}],"lines":[[number,s,text,bad]],"traffic":[[s,bytes out,bytes in]],
  ///  "views":[[clock,s,nodes,changed]]} since `from`, which is moved to the end. Empty if nothing has come since.
  [[nodiscard]] std::string json(place& from) const;
  /// With the columns of Caffe's parse_log: NumIters,Seconds,LearningRate and the outputs, then ours. A line per kept
  /// point.
  [[nodiscard]] std::string csv() const;

 private:
  void name_outputs(const std::vector<output_value>& outputs);
  void add_line(std::string text, bool bad);
  [[nodiscard]] double seconds() const;

  std::shared_ptr<progress> next_;
  std::size_t nodes_;
  mutable std::mutex mutex_;
  std::int64_t began_ns_;
  std::uint64_t last_clock_ = 0;
  std::shared_ptr<const std::vector<std::string>> names_;  // of the outputs
  thinned_list<point> points_;
  thinned_list<test> tests_;
  std::map<std::size_t, test> newest_tests_;  // by test net
  std::uint64_t test_phases_ = 0;
  std::deque<std::shared_ptr<const line>> lines_;
  std::vector<traffic> traffic_;
  double traffic_step_s_ = 0.9;
  std::uint64_t lines_seen_ = 0, views_seen_ = 0;
  std::deque<view_mark> views_;
  pauses pauses_;
  // The newest rate, and when it was taken, in seconds of training.
  double images_at_s_ = -1, images_s_ = 0;
  struct moment {
    std::uint64_t clock = 0;
    double trained_s = 0;
  };
  std::optional<moment> first_;
  moment newest_;
  std::uint64_t images_ = 0, communication_ns_ = 0, exposed_ns_ = 0;
};

}  // namespace poseidon
