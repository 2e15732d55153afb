#include "apps/node/shown_run.hpp"

#include "actors/node/run_node.hpp"
#include "apps/node/run_record.hpp"
#include "apps/terminal/console.hpp"
#include "apps/terminal/csv_file.hpp"
#include "apps/terminal/json_console.hpp"
#include "apps/terminal/tensorboard_file.hpp"
#include "apps/web/run_files.hpp"

namespace poseidon::app {

namespace {

std::shared_ptr<run_display> display_of(const node_options& o) {
  const auto level = verbosity_of(o.log_level);
  const auto nodes = !o.join.empty() ? 2 : o.nodes;  // a joiner is never alone
  if (o.json) return std::make_shared<json_console>(level, nodes);
  if (o.log_format == "caffe") return std::make_shared<caffe_console>(level, nodes);
  return std::make_shared<console>(level, nodes);
}

}  // namespace

shown_run::shown_run(const node_options& o)
    : display_(display_of(o)), all_(std::make_shared<progress_group>(display_)) {}

void shown_run::open_log(const node_options& o) {
  if (o.log_dir.empty()) return;
  log_ = std::make_shared<log_file>(o.log_dir, verbosity_of(o.log_level));
  all_->add(log_);
}

void shown_run::open_tables(const node_options& o, const node_setup& setup) {
  std::optional<std::uint64_t> resumed_at;
  if (!o.snapshot.empty()) resumed_at = iteration_of(*setup.run, setup.run->first_clock);
  if (!o.csv.empty()) all_->add(std::make_shared<csv_file>(o.csv, resumed_at, *all_));
  if (!o.tensorboard.empty()) all_->add(std::make_shared<tensorboard_file>(o.tensorboard, *all_));
}

void shown_run::open_record(const node_setup& setup) {
  if (!setup.run) return;
  const auto& prefix = setup.run->solver.spec.snapshot_prefix();
  const auto first = iteration_of(*setup.run, setup.run->first_clock);
  all_->add(std::make_shared<run_record>(web::run_file(prefix, first), setup.records.view, *all_));
}

void shown_run::began(const solver_file& solver) const {
  const auto& net = solver.train_net.spec.name();
  display_->began(net, policy_of(solver.spec));
  if (log_) log_->began(net, policy_of(solver.spec));
}

void shown_run::ended(const node_result& result) {
  all_->close();
  if (log_) log_->ended(result.error);
  display_->ended(result.exit_code, result.error);
}

}  // namespace poseidon::app
