#include "actors/training/training_reports.hpp"

#include "actors/core/trace.hpp"
#include "models/solver/outer_steps.hpp"
#include "models/solver/solver_file.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

training_failed divergence(const nonfinite_found& m, const ::caffe::SolverParameter& solver) {
  const auto passes = static_cast<std::uint64_t>(std::max(1, solver.iter_size()));
  const auto of_clock = outer_rule_of(solver) ? m.pass.index / passes : 0;
  const auto iteration = iteration_of(solver, value(m.pass.clock)) + of_clock;
  return {"training diverged at iteration " + std::to_string(iteration) + ": layer \"" + m.layer +
              "\" produced the first NaN or infinity. Likely cause: the learning rate (" +
              std::to_string(learning_rate(solver, iteration)) +
              ") is too high; try a tenth of it, or check the data for such values. "
              "The last snapshot is untouched.",
          4};
}

training_reports::training_reports(const solver_setup& setup)
    : setup_(setup),
      loss_(std::max<std::size_t>(1, clocks_of(setup.spec, setup.spec.average_loss()))),
      board_(setup.part.workers) {}

void training_reports::leave_part(std::uint64_t next_first_clock) {
  if (!begun_) return;
  images_before_ += (next_first_clock - first_clock_) * setup_.part.images_of_all;
  first_clock_ = next_first_clock;
  overlap_before_.communication_ns += overlap_of_view_.communication_ns;
  overlap_before_.exposed_ns += overlap_of_view_.exposed_ns;
  overlap_of_view_ = {};
}

void training_reports::connect(std::vector<output_value> outputs) {
  outputs_ = std::move(outputs);
  sums_ = {outputs_.size(), std::size_t{setup_.part.replicas} * setup_.part.micro_batches};
  board_ = report_board(setup_.part.workers);
}

void training_reports::begin(std::uint64_t first_clock) {
  first_clock_ = computed_ = first_clock;
  begun_ = true;
}

void training_reports::go_back(std::uint64_t clock) {
  computed_ = clock;
  last_.clear();
  reported_ = false;
}

void training_reports::show_step(std::uint64_t done, std::uint64_t end) const {
  if (!setup_.display) return;
  const auto carried = setup_.carried ? setup_.carried() : traffic{};
  const auto images = images_before_ + (done - first_clock_) * setup_.part.images_of_all;
  const auto& spec = setup_.spec;
  setup_.display->stepped({iteration_of(spec, done), iteration_of(spec, end), images,
                           carried.bytes_out, carried.bytes_in});
}

bool training_reports::add(const outputs_ready& m) {
  const auto clock = value(m.pass.clock);
  auto sums = sums_.add(clock, m.output, m.values,
                        setup_.part.weights.empty() ? 1 : setup_.part.weights.at(value(m.replica)));
  if (!sums) return false;
  last_ = std::move(*sums);
  computed_ = clock + 1;
  return true;
}

/// Whether one of the clock's iterations is a multiple of `display`.
bool training_reports::displays(std::uint64_t clock, std::uint64_t display) const {
  const auto first = iteration_of(setup_.spec, clock);
  const auto next = iteration_of(setup_.spec, clock + 1);
  return first % display == 0 || first / display < (next - 1) / display;
}

std::optional<frames::worker_report> training_reports::report(std::uint64_t end) {
  const auto clock = computed_ - 1;
  const auto passes =
      (setup_.part.weights.empty() ? static_cast<double>(setup_.part.replicas) : 1) *
      setup_.part.micro_batches;
  for (auto& sum : last_) sum /= passes;
  last_.insert(last_.begin(), loss_.add(weighted_loss(last_, outputs_)));
  const auto display = static_cast<std::uint64_t>(std::max(0, setup_.spec.display()));
  reported_ = display == 0 || displays(clock, display) || computed_ == end;
  return reported_ && display > 0 ? std::optional(report_now()) : std::nullopt;
}

std::optional<frames::worker_report> training_reports::last_report(std::uint64_t end) {
  if (computed_ != end || last_.empty() || std::exchange(reported_, true)) return std::nullopt;
  return report_now();
}

/// Of the view alone: what members have done that leave is still in the sum over all, and who joins adds what it has done.
frames::worker_report training_reports::report_now() {
  const auto overlap = setup_.overlap->read(now_ns());
  // Outputs may overtake the pass_issued of their pass, so the solver's own count may lag here.
  const std::uint64_t images = (computed_ - first_clock_) * setup_.part.images_per_clock;
  return {.clock = clock_id{computed_ - 1},
          .passes = 1,
          .sums = last_,
          .images = images,
          .communication_ns = overlap.communication_ns,
          .exposed_ns = overlap.exposed_ns};
}

std::optional<test_found> training_reports::take(worker_id from, const frames::worker_report& r,
                                                 std::uint64_t end,
                                                 const std::vector<solver_net>& tests) {
  auto merged = board_.add(from, r);
  if (!merged) return std::nullopt;
  const auto clock = value(r.clock), iteration = iteration_of(setup_.spec, clock);
  if (r.test_net < 0) {
    overlap_of_view_ = {merged->communication_ns, merged->exposed_ns};
    if (setup_.display)
      setup_.display->trained(
          {.clock = iteration,
           .last_clock = iteration_of(setup_.spec, end),
           .loss = merged->means.front(),
           .outputs = {merged->means.begin() + 1, merged->means.end()},
           .learning_rate = learning_rate(setup_.spec, iteration),
           .images = images_before_ + merged->images,
           .communication_ns = overlap_before_.communication_ns + overlap_of_view_.communication_ns,
           .exposed_ns = overlap_before_.exposed_ns + overlap_of_view_.exposed_ns},
          outputs_);
    return std::nullopt;
  }
  const auto net = static_cast<std::size_t>(r.test_net);
  test_found found{net, clock, std::move(merged->means), tests.at(net).outputs};
  if (setup_.spec.test_compute_loss()) {
    found.means.push_back(weighted_loss(found.means, found.outputs));
    found.outputs.push_back({"test_loss", 0});
  }
  if (setup_.display) setup_.display->tested(net, iteration, found.means, found.outputs);
  return found;
}

}  // namespace poseidon
