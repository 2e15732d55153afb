#include "apps/terminal/run_display.hpp"

#include <chrono>
#include <utility>

namespace poseidon::app {

namespace {
auto now() {
  return std::chrono::steady_clock::now();
}
}  // namespace

verbosity verbosity_of(const std::string& word) {
  return word == "quiet" ? verbosity::quiet : word == "debug" ? verbosity::debug : verbosity::info;
}

run_display::run_display(verbosity level, std::size_t nodes, std::optional<terminal> live)
    : level_(level),
      run_(std::make_shared<measured>(nodes)),
      screen_(level == verbosity::quiet ? std::nullopt : live,
              [this](std::size_t columns) { return painted(columns); }) {}

void run_display::trained(const iteration& i, const std::vector<output_value>& outputs) {
  run_meter::interval rates;
  {
    const std::lock_guard lock(run_->mutex);
    rates = run_->meter.trained(i, now());
    auto& state = run_->state;
    state.loss = i.loss;
    state.hidden = rates.hidden;
    state.outputs.clear();
    for (std::size_t o = 0; o < outputs.size() && o < i.outputs.size(); ++o)
      if (outputs[o].loss_weight == 0) state.outputs.emplace_back(outputs[o].name, i.outputs[o]);
  }
  interval(i, outputs, rates);
}

void run_display::stepped(const step& s) {
  const std::lock_guard lock(run_->mutex);
  run_->meter.stepped(s, now());
}

std::shared_ptr<void> run_display::working(long_task task) {
  std::function<void()> ended;
  if (task.training_pauses) {
    const std::lock_guard lock(run_->mutex);
    run_->meter.pause_begins(now());
    ended = [run = run_] {
      const std::lock_guard lock(run->mutex);
      run->meter.pause_ends(now());
    };
  }
  return tasks_.begin(std::move(task), now(), std::move(ended));
}

std::vector<styled_line> run_display::painted(std::size_t columns) {
  std::vector<styled_line> lines;
  const bool busy = tasks_.any();
  {
    const std::lock_guard lock(run_->mutex);
    const auto& meter = run_->meter;
    auto& state = run_->state;
    if (meter.begun()) {
      state.done = meter.newest().done;
      state.total = meter.newest().total;
      state.left_s = meter.left_s(now());
      state.tests_left_s = meter.tests_left_s(now());
      state.waiting_s = busy ? std::nullopt : meter.waiting_s(now());
      state.images_s = meter.images_s();
      state.net = meter.net();
      lines = run_lines(state, columns);
    }
  }
  for (auto& line : tasks_.lines(columns, now(), lines.empty() ? 2 : 1))
    lines.push_back(std::move(line));
  return lines;
}

}  // namespace poseidon::app
