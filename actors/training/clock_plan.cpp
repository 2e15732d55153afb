#include "actors/training/clock_plan.hpp"

namespace poseidon {

clock_plan::step clock_plan::next() const {
  if (clock_ >= end_) return step::end;
  if (paused_ == clock_) return step::pause;
  if (held_ == clock_) return step::hold;
  return step::train;
}

std::uint64_t clock_plan::hold(bool in_work) {
  held_ = in_work ? clock_ + 1 : clock_;
  return *held_;
}

void clock_plan::pause_at(std::uint64_t clock) {
  paused_ = clock;
  held_.reset();
}

void clock_plan::resume() {
  if (paused_ == clock_) paused_.reset();  // else it belongs to the next change
  // Solver state may still travel to its new owner; it has arrived when the next version exists.
  least_end_ = clock_ + 1;
}

void clock_plan::go_back(std::uint64_t clock) {
  clock_ = clock;
  end_ = last_;
  ends_early_ = false;
  held_.reset();
  paused_.reset();
}

void clock_plan::end_at(std::uint64_t version) {
  end_ = std::min(end_, version);
  ends_early_ = true;
}

}  // namespace poseidon
