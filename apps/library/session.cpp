#include "apps/library/session.hpp"

#include "models/plan/wire_choice.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

namespace poseidon::library {

namespace {

using steady = std::chrono::steady_clock;

}  // namespace

session::session(options told) : options_(std::move(told)) {}

void session::require_own_process() const {
  if (!process_.is_here())
    throw session_error(
        "process " + std::to_string(::getpid()) + " is a fork of process " +
        std::to_string(process_.number()) +
        ", which has joined: only that one may call Poseidon. Join after the fork, or "
        "start workers by spawning them");
}

void session::require_not_left() const {
  if (phase_ == phase::leaving || phase_ == phase::over)
    throw session_error("this worker has left the run");
}

void session::require_before_begin(const char* function) const {
  require_not_left();
  if (phase_ != phase::declared)
    throw session_error(std::string(function) +
                        " is called after poseidon_declare and before poseidon_begin");
}

void session::declare(std::vector<declared_parameter> parameters,
                      std::vector<const float*> first_values) {
  require_own_process();
  const std::lock_guard lock(ends_);
  require_not_left();
  if (phase_ != phase::made) throw session_error("the parameters have been declared already");
  const bool first = options_.join.empty() || options_.nodes;
  for (std::size_t i = 0; first && i < parameters.size(); ++i)
    if (first_values[i] == nullptr)
      throw session_error("parameter " + std::to_string(i) + ", \"" + parameters[i].name +
                          "\", has no first values, and worker 0's count");
  next_clock_ = std::vector<std::atomic<std::uint64_t>>(parameters.size());
  untold_ = std::make_unique<push_batch>(parameters.size());
  program_ = std::make_shared<program>(std::move(parameters), std::move(first_values));
  phase_ = phase::declared;
}

// -- clocks ---------------------------------------------------------------------------------------------

parameter_id session::known(std::size_t parameter) const {
  require_training();
  return id_of(parameter);
}

void session::require_training() const {
  require_own_process();
  require_not_left();
  if (phase_ != phase::training) throw session_error("the run has not begun");
}

parameter_id session::id_of(std::size_t parameter) const {
  if (parameter >= program_->declared.size())
    throw session_error("parameter is " + std::to_string(parameter) + ", declared are " +
                        std::to_string(program_->declared.size()));
  return as_id<parameter_id>(parameter);
}

std::size_t session::values_of(std::size_t parameter) const {
  return static_cast<std::size_t>(count(program_->declared[value(known(parameter))].shape));
}

void session::order(const std::uint32_t* places) {
  require_own_process();
  require_not_left();
  if (phase_ == phase::made) throw session_error("nothing has been declared");
  const auto parameters = program_->declared.size();
  for (std::size_t i = 0; i < parameters; ++i)
    if (places[i] >= parameters)
      throw session_error("the place of \"" + program_->declared[i].name + "\" is " +
                          std::to_string(places[i]) + ", expected less than " +
                          std::to_string(parameters));
  for (std::size_t i = 0; i < parameters; ++i)
    program_->places->set(as_id<layer_id>(i), layer_id{places[i]});
}

/// Refuses a push that does not come in its turn.
parameter_id session::take_turn(std::size_t parameter, std::uint64_t clock) {
  const auto id = known(parameter);
  const auto& name = program_->declared[parameter].name;
  const auto& next = next_clock_[parameter];
  if (clock != next)
    throw session_error("\"" + name + "\" is pushed for clock " + std::to_string(clock) +
                        ", expected clock " + std::to_string(next));
  const auto here = program_->fresh.wait(id, clock, seconds(0));
  if (here == fresh_board::answer::failed) throw session_error(program_->fresh.error());
  if (here == fresh_board::answer::not_yet)
    throw session_error("\"" + name + "\" is pushed for clock " + std::to_string(clock) +
                        ", but its version " + std::to_string(clock) +
                        " is not here yet: wait for it first");
  if (program_->outlives_losses && !program_->fresh.is_whole(clock))
    throw session_error(
        "\"" + name + "\" is pushed for clock " + std::to_string(clock) +
        ", but not all parameters of version " + std::to_string(clock) +
        " are here yet: where a run outlives lost workers (on-loss=go-on), wait for "
        "all of them first");
  if (const auto left = program_->fresh.first_to_leave(); left && clock >= left->version)
    throw session_error(program_->fresh.error());
  if (program_->clocks.begin(clock, seconds(0)) != clock_gate::answer::begun)
    throw session_error("\"" + name + "\" is pushed for clock " + std::to_string(clock) +
                        ", which has not begun: routes change before it, or others join. Call "
                        "poseidon_begin_clock at the beginning of each clock");
  return id;
}

void session::pushed(parameter_id parameter, std::uint64_t clock, std::size_t bytes) {
  next_clock_[value(parameter)] = clock + 1;
  const auto now = steady::now();
  program_->calls.note(now);
  // Another thread that waits already may wait for this one.
  if (untold_->add({parameter, clock_id{clock}}, bytes, now) || program_->calls.some_wait())
    tell_pushed();
}

void session::tell_pushed() {
  if (auto pushed = untold_->take(); !pushed.gradients.empty())
    program_->caller.tell(std::move(pushed));
}

void session::push(std::size_t parameter, std::uint64_t clock, const float* gradient) {
  require_training();  // before that there may be no program
  const std::lock_guard lock(program_->lending);
  const auto id = take_turn(parameter, clock);
  if (gradient != nullptr && !program_->outlives_losses) require_giver(id);
  if (const auto [factors, self] = program_->factors.of(id); factors != nullptr) {
    if (gradient != nullptr)
      throw session_error("\"" + program_->declared[parameter].name +
                          "\" is pushed as a whole in clock " + std::to_string(clock) +
                          ", in which all workers give its factors (poseidon_route)");
    factors->fill(clock_id{clock}, self, {}, {});
  }
  program_->lent[id]->lend(gradient, step_of(id), wire_of(id));
  pushed(id, clock, gradient == nullptr ? 0 : sizeof(float) * values_of(parameter));
}

void session::push_factors(std::size_t parameter, std::uint64_t clock, const float* u,
                           const float* v, std::size_t rows, float* mean) {
  require_training();  // before that there may be no program
  const std::lock_guard lock(program_->lending);
  const auto id = take_turn(parameter, clock);
  const auto& declared = program_->declared[parameter];
  if (mean != nullptr && program_->optimizer != optimizer_rule::none)
    throw session_error("a place for the mean of \"" + declared.name +
                        "\" is given, but the workers make the optimizer's steps: there is none");
  const auto [factors, self] = program_->factors.of(id);
  if (factors == nullptr)
    throw session_error("\"" + declared.name + "\" is pushed as factors in clock " +
                        std::to_string(clock) +
                        ", in which all workers give it as a whole (poseidon_route)");
  const auto room = factors->of_node(self).rows;
  if (rows > room)
    throw session_error("the factors of \"" + declared.name + "\" have " + std::to_string(rows) +
                        " rows in clock " + std::to_string(clock) + ", at most " +
                        std::to_string(room) +
                        " were offered: give every batch the same size, or start worker 0 with "
                        "routes=ps");
  const auto values = [&](const float* from, std::size_t dim) {
    return std::span(from, rows * static_cast<std::size_t>(declared.shape[dim]));
  };
  factors->fill(clock_id{clock}, self, values(u, 0), values(v, 1));
  program_->lent[id]->lend(nullptr, step_of(id), wire_of(id), mean);
  pushed(id, clock, values(u, 0).size_bytes() + values(v, 1).size_bytes());
}

/// What the shards step with has the view's format, and what worker 0 gives has none. Small parameters and bundles have no blocks.
wire_format session::wire_of(parameter_id parameter) const {
  const auto& declared = program_->declared[value(parameter)];
  const bool mean = program_->optimizer == optimizer_rule::none && !declared.given;
  return mean ? format_in_use(declared, wire_) : wire_format::float32;
}

wire_format session::wire(wire_format format) {
  require_training();
  if (program_->optimizer != optimizer_rule::none && format != program_->wire)
    throw session_error("the workers make the optimizer's steps, and values travel as " +
                        std::string(to_string(program_->wire)) + " in the whole run, not as " +
                        std::string(to_string(format)) +
                        ": give worker 0 the option wire=" + std::string(to_string(format)));
  if (program_->optimizer != optimizer_rule::none) return format;
  return wire_.exchange(may_have_others() ? format : wire_format::float32);
}

// -- routes ---------------------------------------------------------------------------------------------

std::size_t session::parameters() const {
  return program_ == nullptr ? 0 : program_->declared.size();
}

void session::measured(std::vector<parameter_load> loads) {
  require_training();
  const std::lock_guard lock(ends_);
  if (offered_) throw session_error("this worker has offered factors already");
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const auto& declared = program_->declared[i];
    if (loads[i].factor_rows > 0 && declared.shape.size() != 2)
      throw session_error("\"" + declared.name + "\" is offered as factors, but it has " +
                          plural(declared.shape.size(), "dimension") + ", expected 2");
    if (loads[i].factor_rows > 0 && declared.given)
      throw session_error("\"" + declared.name +
                          "\" is offered as factors, but it is of the kind POSEIDON_GIVEN");
    for (const auto s : {loads[i].backward_s, loads[i].product_s})
      if (!(s >= 0 && s < 1e6))
        throw session_error("the time of \"" + declared.name + "\" is " + std::to_string(s) +
                            " s, expected 0 or more");
  }
  offered_ = true;
  program_->caller.tell(loads_measured{std::move(loads)});
}

clock_gate::answer session::begin_clock(std::uint64_t clock, seconds limit) {
  require_training();
  program_->newcomers.forget_what_came();
  const program_calls::waits waits(program_->calls);
  tell_pushed();
  const auto answer = program_->clocks.begin(clock, limit);
  if (answer == clock_gate::answer::begun && program_->clocks.is_closed())
    throw session_error(program_->fresh.error());
  if (answer == clock_gate::answer::begun) see_view();
  return answer;
}

bool session::goes_as_factors(std::size_t parameter) const {
  return program_->factors.of(known(parameter)).store != nullptr;
}

fresh_board::answer session::wait(std::size_t parameter, std::uint64_t version, seconds limit) {
  const auto id = known(parameter);
  require_pushed(id, version);
  if (limit.count() <= 0) {
    program_->calls.note(steady::now());
    tell_pushed();
    const auto now = program_->fresh.wait(id, version, limit);
    if (now == fresh_board::answer::failed) throw session_error(program_->fresh.error());
    return now;
  }
  const auto since = steady::now();
  // It waits before those that are there are told: none that comes later is kept back.
  const program_calls::waits waits(program_->calls);
  tell_pushed();
  const auto answer = program_->fresh.wait(id, version, limit);
  program_->waited_ns += (steady::now() - since) / std::chrono::nanoseconds(1);
  if (answer == fresh_board::answer::failed) throw session_error(program_->fresh.error());
  return answer;
}

std::vector<fresh_board::answer> session::look(std::span<const std::uint32_t> parameters,
                                               std::uint64_t version) {
  require_training();
  std::vector<parameter_id> ids;
  ids.reserve(parameters.size());
  for (const auto p : parameters) ids.push_back(known(p));
  tell_pushed();
  return program_->fresh.look(ids, version);
}

const float* session::values(std::size_t parameter, std::uint64_t version) const {
  if (phase_ != phase::training || parameter >= program_->declared.size()) return nullptr;
  return program_->values(as_id<parameter_id>(parameter), version);
}

void session::report(std::uint64_t clock, double loss, std::uint64_t samples) {
  require_training();
  program_->caller.tell(clock_reported{clock_id{clock}, loss, samples});
}

}  // namespace poseidon::library
