#include "actors/training/test_phases.hpp"

#include "models/solver/outer_steps.hpp"

#include <algorithm>
#include <string>

namespace poseidon {

namespace {

/// A node that goes back has been ahead by the staleness of the run and one clock at most.
constexpr std::size_t most_remembered = 64;

}  // namespace

bool test_phases::due(std::uint64_t clock) const {
  const auto interval = clocks_of(setup_.spec, setup_.spec.test_interval());
  return interval > 0 && clock % interval == 0 && !completed_at(clock) &&
         (clock > 0 || setup_.spec.test_initialization());
}

void test_phases::begin(std::size_t net, const std::vector<solver_net>& nets) {
  net_ = net;
  given_up_ = false;
  share_ = nets[net].share;
  now_ = {share_, nets[net].outputs.size()};
  show(nets.size() > 1);
}

void test_phases::show(bool one_of_several) {
  passes_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  shown_.reset();
  if (!setup_.display) return;
  long_task task;
  task.what = one_of_several ? "test net " + std::to_string(net_) : "testing";
  task.total = now_.passes();
  task.done = [passes = passes_] { return passes->load(std::memory_order_relaxed); };
  task.training_pauses = true;
  shown_ = setup_.display->working(std::move(task));
}

std::optional<test_phases::pass> test_phases::start(std::uint64_t replica) {
  const auto index = now_.start(replica);
  if (!index) return std::nullopt;
  return pass{static_cast<std::uint32_t>(*index), share_.first_sample(completed_, replica, *index)};
}

void test_phases::computed(std::uint64_t replica, std::size_t first,
                           const std::vector<float>& values) {
  now_.computed(replica, first, values);
  passes_->store(now_.computed(), std::memory_order_relaxed);
}

frames::worker_report test_phases::report(std::uint64_t clock, std::uint64_t images) const {
  return {clock_id{clock}, static_cast<std::int32_t>(net_),
          static_cast<std::uint32_t>(now_.passes()), now_.sums(), images};
}

void test_phases::give_up() {
  shown_.reset();
  now_.start_no_more();
  given_up_ = true;
}

void test_phases::complete(std::uint64_t clock) {
  shown_.reset();
  clocks_.push_back(clock);
  if (clocks_.size() > most_remembered) clocks_.pop_front();
  ++completed_;
}

void test_phases::go_back(std::uint64_t clock) {
  while (!clocks_.empty() && clocks_.back() >= clock) {
    clocks_.pop_back();
    --completed_;
  }
}

}  // namespace poseidon
