#include "actors/client/caller.hpp"

#include "actors/core/trace.hpp"

#include <string>
#include <utility>
#include <variant>

namespace poseidon {

namespace {

constexpr std::size_t most_reports = 64;

}  // namespace

caller::caller(actor_context context, caller_setup setup)
    : actor(context), setup_(std::move(setup)), newest_(setup_.workers) {}

void caller::started() {
  const handle<caller> self(this);
  setup_.from->caller.set({self, self, self});
}

/// The program holds a reference to this actor.
void caller::on_exit() {
  setup_.from->caller.set({});
}

void caller::on(const connect_caller& m) {
  neighbours_ = m;
}

/// The program learns from its fresh_board that the first values are here.
void caller::on(const begin_training&) {}

void caller::on(const gradient_lent& m) {
  tell(neighbours_->pushes[m.parameter], backward_done{replica_id{0}, {m.clock, 0, 0}});
}

void caller::on(const layer_fresh& m) {
  // A declared layer has one parameter, with its number.
  setup_.from->fresh.publish(parameter_id{value(m.layer)}, value(m.version), m.nothing);
}

// -- what a clock has come to ---------------------------------------------------------------------------

void caller::on(const clock_reported& m) {
  samples_ += m.samples;
  const auto overlap = setup_.overlap->read(now_ns());
  const frames::worker_report report{m.clock,
                                     -1,
                                     1,
                                     {m.loss},
                                     samples_,
                                     overlap.communication_ns,
                                     static_cast<std::uint64_t>(setup_.from->waited_ns.load())};
  if (setup_.self == setup_.leader)
    take(setup_.self, report);
  else
    tell(neighbours_->to_leader, send_frame{report, {}, 0});
}

void caller::take(worker_id from, const frames::worker_report& r) {
  newest_[from] = r;
  const auto clock = value(r.clock);
  // A report is optional: clocks that not all workers report would stay for ever.
  if (reports_.size() == most_reports) reports_.erase(reports_.begin());
  auto& of_clock = reports_[clock];
  of_clock.loss += r.sums.front();
  if (++of_clock.workers < setup_.workers) return;
  const auto loss = of_clock.loss / static_cast<double>(setup_.workers);
  reports_.erase(reports_.begin(), reports_.upper_bound(clock));
  if (setup_.display == nullptr) return;
  progress::iteration i;
  i.clock = clock;
  i.loss = loss;
  for (const auto& newest : newest_) {
    i.images += newest.images;
    i.communication_ns += newest.communication_ns;
    i.exposed_ns += newest.exposed_ns;
  }
  const auto carried = setup_.carried ? setup_.carried() : traffic{};
  setup_.display->trained(i, {});
  setup_.display->stepped({clock + 1, 0, i.images, carried.bytes_out, carried.bytes_in});
}

void caller::on(const control_arrived& m) {
  if (const auto* r = std::get_if<frames::worker_report>(&m.header)) take(m.from, *r);
  if (const auto* left = std::get_if<frames::worker_left>(&m.header))
    if (left->left != setup_.self)
      setup_.from->fresh.left("worker " + std::to_string(value(left->left)), value(left->version));
}

// -- the end --------------------------------------------------------------------------------------------

void caller::on(const program_done& m) {
  tell(neighbours_->node, training_done{version_id{m.version}, samples_, {}});
}

void caller::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
