// tools/oracle/errors.cpp - inputs that must be refused with a message, never accepted and never a
// crash.
#include "models/solver/solver_file.hpp"
#include "models/spec/net_file.hpp"

#include <stdexcept>

#include "tools/oracle/manifest.hpp"
#include "tools/oracle/one_pass.hpp"

namespace poseidon::oracle {

namespace {

namespace fs = std::filesystem;

bool begins(const std::string& text, const std::string& with) {
  return text.rfind(with, 0) == 0;
}

/// "build the net (phase TRAIN) and run forward once[ after copying FILE]"
void build_and_run(const std::string& action) {
  const auto n = build_with_data(read_net("net.prototxt"), {});
  auto values = fresh_values(n);
  const std::string copying = " after copying ";
  if (const auto at = action.find(copying); at != std::string::npos) {
    const auto file = action.substr(at + copying.size());
    copy_weights(read_caffemodel(file), file, n, values);
  }
  one_pass(n, values).forward();
}

void create_solver() {
  const auto solver = read_solver("solver.prototxt");
  const auto n = build_with_data(solver.train_net, solver.train_state);
  for (std::size_t i = 0; i < solver.test_nets.size(); ++i)
    (void)build_with_data(solver.test_nets[i], solver.test_states[i]);
  (void)rule_of(solver.spec);
  (void)learning_rate(solver.spec, 0);
  const auto values = fresh_values(n);
  one_pass(n, values).forward();
}

void restore_state() {
  const auto solver = read_solver("solver.prototxt");
  const auto n = build_with_data(solver.train_net, solver.train_state);
  const auto file = fs::exists("x.solverstate") ? "x.solverstate" : "no_such.solverstate";
  (void)read_solverstate(file, n, rule_of(solver.spec).kind);
}

void act(const std::string& action) {
  if (begins(action, "build the net")) return build_and_run(action);
  if (begins(action, "create the solver")) return create_solver();
  if (begins(action, "restore the solver state")) return restore_state();
  throw std::logic_error("unknown action: " + action);
}

std::optional<std::string> has_message(const std::exception& e) {
  if (std::string(e.what()).empty()) return "refused, but without a message";
  return std::nullopt;
}

std::optional<std::string> must_fail(const json& one) {
  try {
    act(text(one, "action"));
  } catch (const unsupported_layer&) {
    throw;
  } catch (const std::invalid_argument& e) {
    return has_message(e);
  } catch (const std::runtime_error& e) {  // a record that is read only in its iteration
    return has_message(e);
  }
  return "accepted, but Caffe refuses it: see error.txt";
}

}  // namespace

std::vector<result> run_error_cases(const fs::path& directory) {
  std::vector<result> results;
  for (const auto& one : cases_of(directory, "errors"))
    results.push_back(run_case(directory, one, must_fail));
  return results;
}

}  // namespace poseidon::oracle
