// apps/node/train_verb.cpp - poseidon-node train: options, wiring, exit code. The work is done in actors/node/node.hpp.
#include "actors/cluster/looking.hpp"
#include "apps/node/looking.hpp"
#include "apps/node/run_setup.hpp"
#include "apps/node/shown_run.hpp"
#include "apps/node/signal_target.hpp"
#include "apps/node/signals.hpp"
#include "apps/node/start_checks.hpp"
#include "apps/node/verbs.hpp"
#include "apps/run_app.hpp"
#include "apps/web/live_site.hpp"
#include "messages/wire/handshake.hpp"
#include "models/files/newest_state.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace poseidon::app {

namespace {

/// For --resume auto puts the newest state in its place. Returns  a line for the user; empty: another option.
std::string take_newest_state(const std::optional<run_definition>& run, node_options& o) {
  if (o.snapshot != "auto" || !run) return "";
  const auto& prefix = run->solver.spec.snapshot_prefix();
  const auto found = newest_state(prefix);
  o.warnings.insert(o.warnings.end(), found.passed_over.begin(), found.passed_over.end());
  o.snapshot = found.path.value_or("");
  return found.path
             ? "resuming from " + found.path->string()
             : "no state to resume from begins with " + prefix + "_iter_: training begins anew";
}

/// Why a run that is resumed trains nothing; empty: it does.
std::string nothing_left(const node_setup& setup, const node_options& o) {
  if (!setup.run || o.snapshot.empty()) return "";
  const auto done = iteration_of(*setup.run, setup.run->first_clock);
  const auto all = static_cast<std::uint64_t>(std::max(0, setup.run->solver.spec.max_iter()));
  if (done < all) return "";
  return o.snapshot.string() + " has trained " + plural(done, "iteration") +
         " already, and the solver's max_iter is " + std::to_string(all) +
         ": nothing is left to train. Raise max_iter to go on.";
}

/// Everything that is known about the run before it begins, to the user and to the node.
node_setup started(node_options o, shown_run& shown) {
  std::optional<run_definition> run;
  if (o.join.empty()) {
    run = read_run(o);
    check_solver(run->solver);
    for (const auto& lines : {run->solver.warnings, take_solver_mode(run->solver, o),
                              warn_of_staleness(run->solver, o), take_survive(*run, o)})
      o.warnings.insert(o.warnings.end(), lines.begin(), lines.end());
  }
  const auto losses = run ? note_on_losses(*run, o) : std::string();
  const auto resumed = take_newest_state(run, o);
  auto setup = setup_of(o, std::move(run));
  shown.open_tables(o, setup);
  setup.display = shown.all();
  for (const auto& line : {resumed, losses})
    if (!line.empty()) setup.display->note(line);
  for (const auto& line : o.warnings) setup.display->warning(line);
  if (const auto line = nothing_left(setup, o); !line.empty()) setup.display->warning(line);
  return setup;
}

std::shared_ptr<signal_target> target_of(signal_thread& signals, const node_options& o,
                                         const shown_run& shown) {
  auto target = std::make_shared<signal_target>();
  signals.run(
      [target, &o](int signal) {
        const auto effect = signal == SIGHUP   ? o.sighup
                            : signal == SIGINT ? o.sigint
                                               : signal_effect::stop;
        target->take(signal, effect);
        return effect == signal_effect::stop;
      },
      [display = shown.display()] { display->lines().abandon(); });
  return target;
}

node_result train(const node_options& o, shown_run& shown, signal_target& signals) {
  auto setup = started(o, shown);
  if (setup.run) shown.began(setup.run->solver);
  prepare(setup);
  shown.open_record(setup);
  std::unique_ptr<web::server> page;
  if (o.web) {
    page = web::serve_live(*o.web, o.web_token, setup.records.view, o.tls);
    setup.display->note("page at " + page->url());
  }
  return run_node(std::move(setup), [&](auto tell) { signals.hear(std::move(tell)); });
}

/// With --join and --solver a node joins the run of the others where it goes on, as after its machine has started again, and begins it
/// where there is none.
node_options to_come_back_or_begin(const node_options& o, shown_run& shown) {
  if (o.join.empty() || o.solver.empty()) return o;
  if (auto others = look_for_run(o.join, o.token, o.tls); !others.empty()) {
    shown.all()->note("the node at " + to_string(others.front()) +
                      " is in a run: this node joins it");
    return as_joiner(o, std::move(others));
  }
  shown.all()->note("no node at --join is in a run: this node begins it");
  auto begins = o;
  begins.join.clear();
  return begins;
}

node_result train_and_come_back(const node_options& given, shown_run& shown,
                                signal_thread& thread) {
  const auto signals = target_of(thread, given, shown);
  const auto o = to_come_back_or_begin(given, shown);
  if (const int signal = signals->end_signal())
    return {128 + signal, o.join.empty() && given.join.empty()
                              ? "told to end before the run began"
                              : "told to end while it looked for a run to come back to"};
  auto result = train(o, shown, *signals);
  while (!result.others.empty() && o.rejoin && signals->end_signal() == 0) {
    shown.all()->warning(result.error + "; joining them again");
    const auto again = as_joiner(o, std::exchange(result.others, {}));
    result = {};  // with what it has compiled
    result = train(again, shown, *signals);
  }
  return result;
}

}  // namespace

int train_verb(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  if (!options) return 0;  // --help, --version
  if (!options->explain_routes.empty()) return explain_routes(*options);
  signal_thread signals;
  shown_run shown(*options);
  node_result result;
  try {
    shown.open_log(*options);
    result = train_and_come_back(*options, shown, signals);
  } catch (const handshake_error& e) {  // a node at --join refuses this one
    result = {2, in_words(e.what())};
  } catch (const std::exception& e) {  // usually a bad file
    result = {exit_code_of(e), in_words(e.what())};
  }
  shown.ended(result);
  return result.exit_code;
}

}  // namespace poseidon::app
