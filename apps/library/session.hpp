// apps/library/session.hpp
//
// One worker's part in a run, as poseidon.h shows it: a node inside somebody else's process, and the program around it. What the
// program does wrong is refused here, before an actor hears of it.
//
//   made -declare-> declared -begin-> [joining] -version 0 of all parameters is here-> training -leave-> [leaving] -> over
#pragma once
#include "actors/client/program.hpp"
#include "actors/client/push_batch.hpp"
#include "actors/node/node_host.hpp"
#include "apps/library/line_log.hpp"
#include "apps/library/options.hpp"
#include "apps/library/own_process.hpp"
#include "apps/web/server.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace poseidon::library {

/// What the program cannot do, or why the run is over: one line for its user.
class session_error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Of parameters that step in the same way.
inline constexpr std::size_t most_groups = 65536;

using seconds = std::chrono::duration<double>;

[[nodiscard]] inline seconds left_of(seconds limit, std::chrono::steady_clock::time_point since) {
  return std::max(seconds(0), limit - seconds(std::chrono::steady_clock::now() - since));
}

/// As poseidon.h says: any thread may call any function; calls for one parameter come in the order of its clocks.
class session {
 public:
  explicit session(options told);
  /// Gives up, if it has not left.
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  // All throw session_error.
  void declare(std::vector<declared_parameter> parameters, std::vector<const float*> first_values);
  /// Before begin(): what is to be worker 0's on all workers, beside the parameters.
  void share(std::vector<shared_memory> list);
  /// False: the time is over.
  [[nodiscard]] bool begin(seconds limit);
  void order(const std::uint32_t* places);
  /// Before begin(): shards make the steps of this optimizer; `none`: the workers only compare steps. `groups`: by parameter, below
  /// most_groups.
  void optimize(optimizer_rule rule, std::vector<std::uint32_t> groups);
  /// How the parameters of a group step with the gradients that are pushed from now on.
  void step(std::size_t group, const optimizer_step& step);
  /// Where a parameter's values lie, which its next steps begin with; null: where the version before lies.
  void step_from(std::size_t parameter, const float* values);
  /// Before begin(): what the optimizer has made of a parameter so far; by array, read until begin() has returned.
  void first_state(std::size_t parameter, std::uint64_t steps, std::vector<const float*> state);
  /// Copies the optimizer's state of the version that is here. False: the time is over.
  [[nodiscard]] bool read_state(seconds limit);
  /// Of the last read_state(); null: there is no such array.
  [[nodiscard]] const float* state(std::size_t parameter, std::size_t slot) const;
  [[nodiscard]] std::uint64_t steps(std::size_t parameter) const;
  /// Null: there is none in this clock.
  void push(std::size_t parameter, std::uint64_t clock, const float* gradient);
  void push_factors(std::size_t parameter, std::uint64_t clock, const float* u, const float* v,
                    std::size_t rows, float* mean);
  /// The format of the gradients that are pushed from now on, where their means come back.  Returns  the one until now.
  wire_format wire(wire_format format);
  /// By parameter.
  void measured(std::vector<parameter_load> loads);
  [[nodiscard]] clock_gate::answer begin_clock(std::uint64_t clock, seconds limit);
  /// Where begin_clock() wants it: `bytes` are copied. The first `own` ones are this worker's, the others all workers have alike.
  void give_state(std::uint64_t clock, std::span<const std::byte> bytes, std::uint64_t own);
  /// With which this worker has joined; 0: it has begun with all others.
  [[nodiscard]] std::uint64_t first_clock() const;
  /// What the others have given; until the first begin_clock(). Empty: it has begun with them.
  [[nodiscard]] std::optional<std::span<const std::byte>> state_that_came() const;
  [[nodiscard]] bool goes_as_factors(std::size_t parameter) const;
  [[nodiscard]] fresh_board::answer wait(std::size_t parameter, std::uint64_t version,
                                         seconds limit);
  /// Of these, in their order, up to the first one that is not here.
  [[nodiscard]] std::vector<fresh_board::answer> look(std::span<const std::uint32_t> parameters,
                                                      std::uint64_t version);
  struct collected {
    parameter_id parameter{};
    float* to = nullptr;  ///< null: it is not copied
    fresh_board::answer is = fresh_board::answer::not_yet;
  };
  /// Waits for a version of those that are not yet here, and copies each when it comes. Returns early where one has come that is not
  /// to be copied. How many are still to come.
  [[nodiscard]] std::size_t collect(std::span<collected> wanted, std::uint64_t version,
                                    seconds limit);
  void report(std::uint64_t clock, double loss, std::uint64_t samples);
  /// False: the time is over. `reason`: why it gives up; empty: training is done, here and, unless `others_go_on`, on all workers.
  [[nodiscard]] bool leave(const std::optional<std::string>& reason, bool others_go_on,
                           seconds limit);

  /// The others have gone on without this worker.
  [[nodiscard]] bool is_left_out() const { return *left_out_; }
  [[nodiscard]] std::uint32_t worker() const { return worker_.load(); }
  [[nodiscard]] std::uint32_t workers() const { return workers_.load(); }
  /// Of those that it has trained in, the oldest first; empty: there are not so many.
  [[nodiscard]] std::optional<program_view> view(std::size_t index) const;
  [[nodiscard]] std::size_t parameters() const;
  [[nodiscard]] std::size_t values_of(std::size_t parameter) const;
  /// Null: not begun, or no such parameter.
  [[nodiscard]] const float* values(std::size_t parameter, std::uint64_t version) const;
  [[nodiscard]] std::optional<std::string> next_line() { return lines_->take(); }

 private:
  enum class phase { made, declared, joining, training, leaving, over };
  void require_own_process() const;
  void require_before_begin(const char* function) const;
  void require_not_left() const;
  void look_for_run();
  void start();
  [[nodiscard]] node_setup setup() const;
  [[nodiscard]] bool all_is_shared(seconds limit);
  void see_view();
  /// Now, or later.
  [[nodiscard]] bool may_have_others() const;
  void require_same_end();
  void require_giver(parameter_id parameter) const;
  [[nodiscard]] wire_format wire_of(parameter_id parameter) const;
  void require_training() const;
  [[nodiscard]] std::string why_it_did_not_begin();
  [[nodiscard]] parameter_id id_of(std::size_t parameter) const;
  /// Of a parameter that training goes on with.
  [[nodiscard]] parameter_id known(std::size_t parameter) const;
  [[nodiscard]] std::optional<optimizer_step> step_of(parameter_id parameter) const;
  parameter_id take_turn(std::size_t parameter, std::uint64_t clock);
  void pushed(parameter_id parameter, std::uint64_t clock, std::size_t bytes);
  void tell_pushed();
  void require_pushed(parameter_id parameter, std::uint64_t version) const;
  [[nodiscard]] std::vector<fresh_board::arrival> arrivals(std::span<const parameter_id> of,
                                                           std::uint64_t version, seconds limit);
  [[nodiscard]] bool all_are_here(std::uint64_t version, seconds limit);
  [[nodiscard]] std::optional<std::string> why_not_done();
  [[nodiscard]] std::optional<std::uint64_t> begin_to_leave(
      const std::optional<std::string>& reason, bool others_go_on);
  [[nodiscard]] bool await_end(std::uint64_t trained, seconds limit);
  void give_up(const std::string& why);
  void end();

  options options_;
  const own_process process_;
  std::shared_ptr<line_log> lines_ = std::make_shared<line_log>();
  std::shared_ptr<program> program_;
  std::shared_ptr<cluster_view> view_;
  std::unique_ptr<web::server> page_;
  std::unique_ptr<node_host> host_;
  std::atomic<phase> phase_{phase::made};
  std::atomic<std::uint32_t> worker_{0}, workers_{0};
  std::atomic<wire_format> wire_{wire_format::float32};
  std::vector<std::atomic<std::uint64_t>> next_clock_;  // by parameter
  std::unique_ptr<push_batch> untold_;                  // pushes
  std::vector<std::uint32_t> groups_;                   // by parameter
  std::vector<std::optional<optimizer_step>> told_;     // by group
  solver_state state_;                                  // that has been read last
  std::optional<std::uint64_t> state_of_;               // its version
  bool state_asked_ = false;                            // and not come yet
  bool shares_ = false;                                 // share() has been called
  bool offered_ = false;                                // what it has measured
  // Phases, and what they begin and end. Held for moments: while one thread waits, any other one may end the run.
  std::mutex ends_;
  // Each is held by a thread while it waits, for the end of the run or for the optimizer's state, and before ends_.
  std::timed_mutex leaves_, reads_;
  bool gave_up_ = false;
  const std::shared_ptr<std::atomic<bool>> left_out_ = std::make_shared<std::atomic<bool>>(false);
  std::atomic<bool> others_go_on_ = false;  // it has left, and they may train on
  std::string result_;                      // once it is over: empty, or why the run failed
};

}  // namespace poseidon::library
