#include "apps/terminal/console.hpp"

#include "apps/terminal/figures.hpp"
#include "apps/terminal/json_event.hpp"

#include <utility>

namespace poseidon::app {

console::console(verbosity level, std::size_t nodes)
    : run_display(level, nodes, live_terminal(read_signs(), false)) {}

std::string interval_line(const progress::iteration& i, const std::vector<output_value>& outputs,
                          const run_meter::interval& rates) {
  auto text = "iteration " + std::to_string(i.clock) + "/" + std::to_string(i.last_clock) +
              ": loss " + number(i.loss) + " lr " + number(i.learning_rate);
  for (std::size_t o = 0; o < outputs.size() && o < i.outputs.size(); ++o)
    if (outputs[o].loss_weight == 0) text += " " + outputs[o].name + " " + number(i.outputs[o]);
  text += " images/s " + rate(rates.images_s);
  if (rates.hidden) text += " hidden " + number(100 * *rates.hidden, "%.0f") + "%";
  if (rates.net) text += " net " + byte_rates(rates.net->out_per_s, rates.net->in_per_s);
  if (rates.left_s) text += " left " + duration(*rates.left_s);
  if (rates.left_s && rates.tests_left_s) text += ", tests " + duration(*rates.tests_left_s);
  return text;
}

void console::interval(const iteration& i, const std::vector<output_value>& outputs,
                       const run_meter::interval& rates) {
  if (level() == verbosity::quiet) return;
  auto text = interval_line(i, outputs, rates);
  if (!lines().draws_on_out()) return lines().out(text);
  const std::lock_guard lock(mutex_);
  last_interval_ = std::move(text);
}

void console::tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
                     const std::vector<output_value>& outputs) {
  auto text = "test iteration " + std::to_string(clock) + ":";
  if (test_net > 0)
    text = "test net " + std::to_string(test_net) + " iteration " + std::to_string(clock) + ":";
  for (std::size_t o = 0; o < outputs.size() && o < means.size(); ++o)
    text += " " + outputs[o].name + " " + number(means[o], "%.6g");
  lines().out(text);
}

void console::snapshot(std::uint64_t clock, const std::string& path, const std::string& error) {
  if (error.empty()) {
    lines().out("snapshot " + path);
    has_snapshot_ = true;
    return;
  }
  lines().err("snapshot of iteration " + std::to_string(clock) + " failed: " + error +
              (has_snapshot_ ? " The one before it is untouched." : ""));
}

void console::note(const std::string& text) {
  if (level() != verbosity::quiet) lines().out(text);
}

void console::warning(const std::string& text) {
  lines().err(text);
}

void console::detail(const std::string& text) {
  if (level() == verbosity::debug) lines().out("debug " + time_of_day() + " " + text);
}

void console::ended(int, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!last_interval_.empty()) lines().out(std::exchange(last_interval_, {}));
  }
  if (!reason.empty()) lines().err(reason);
  lines().close();
}

}  // namespace poseidon::app
