// Which solver goes on with which state: all pairs, in both formats, and what Caffe's files give away.
#include "models/files/snapshot.hpp"
#include "models/solver/solver_file.hpp"
#include "tests/folder.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace poseidon;

namespace {

constexpr rule_kind kinds[] = {rule_kind::sgd,     rule_kind::nesterov, rule_kind::adagrad,
                               rule_kind::rmsprop, rule_kind::adadelta, rule_kind::adam};

net small_net() {
  return test::build(
      test::input("x", {2, 4}) +
      test::layer("a", "InnerProduct", "x", "a", "inner_product_param { num_output: 3 }"));
}

/// Each value of each array is `value`.
solver_state state_with(const net& n, std::size_t slots, float value) {
  solver_state state;
  state.iteration = 7;
  state.learned_net = "w.caffemodel";
  for (std::size_t slot = 0; slot < slots; ++slot) {
    state.history.emplace_back();
    for (const auto& p : n.parameters)
      state.history.back().emplace_back(static_cast<std::size_t>(count(p.shape)), value);
  }
  return state;
}

std::string refusal(const std::filesystem::path& path, const net& n, rule_kind rule) {
  try {
    (void)read_solverstate(path, n, rule);
    return {};
  } catch (const spec_error& e) {
    return e.what();
  }
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE(
    "state rule: a state is read by the rule that wrote it, and SGD's by Nesterov, and by no "
    "other") {
  const test::temporary_folder folder;
  const auto n = small_net();
  const auto stem = (folder.path() / "s").string();
  for (const auto format : {::caffe::SolverParameter::BINARYPROTO, ::caffe::SolverParameter::HDF5})
    for (const auto wrote : kinds)
      for (const auto reads : kinds) {
        auto state = state_with(n, history_count(wrote), 0.25f);
        state.rule = name_of(wrote);
        write_state(stem, format, n, state);
        const auto path = state_path(stem, format);
        const bool momentum = wrote <= rule_kind::nesterov && reads <= rule_kind::nesterov;
        const auto text = refusal(path, n, reads);
        CAPTURE(name_of(wrote));
        CAPTURE(name_of(reads));
        if (wrote == reads || momentum) {
          CHECK(text == "");
          CHECK(read_solverstate(path, n, reads).rule == name_of(wrote));
        } else {
          CHECK(text ==
                path + ": a solver of type: \"" + name_of(wrote) +
                    "\" wrote this state, and type: \"" + name_of(reads) +
                    "\" cannot go on with it: its arrays mean something else. Resume with "
                    "type: \"" +
                    name_of(wrote) +
                    "\", or begin with the weights alone (--weights w.caffemodel in place of "
                    "the state), which counts iterations from 0.");
        }
      }
}

TEST_CASE("state rule: a rule that is not known here is refused by its name") {
  const test::temporary_folder folder;
  const auto n = small_net();
  auto state = state_with(n, 1, 0);
  state.rule = "Lion";
  const auto stem = (folder.path() / "s").string();
  write_state(stem, ::caffe::SolverParameter::BINARYPROTO, n, state);
  CHECK(has(refusal(stem + ".solverstate", n, rule_kind::sgd), "a solver of type: \"Lion\" wrote"));
}

TEST_CASE(
    "state rule: in a state of Caffe's, which names no rule, a square is not negative and not "
    "NaN") {
  const test::temporary_folder folder;
  const auto n = small_net();
  const auto stem = (folder.path() / "s").string();
  const auto path = stem + ".solverstate";
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto rule : kinds)
    for (std::size_t slot = 0; slot < history_count(rule); ++slot)
      for (std::size_t parameter = 0; parameter < n.parameters.size(); ++parameter)
        for (const float value : {-1e-30f, -2.0f, nan, 0.0f, -0.0f, 3.0f}) {
          auto state = state_with(n, history_count(rule), 0.25f);
          state.history[slot][parameter].back() = value;
          write_state(stem, ::caffe::SolverParameter::BINARYPROTO, n, state);
          // Adam's first array is a mean of gradients.
          const bool squares =
              rule > rule_kind::nesterov && !(rule == rule_kind::adam && slot == 0);
          const bool wrong = squares && (std::isnan(value) || value < 0);
          const auto text = refusal(path, n, rule);
          CAPTURE(name_of(rule));
          CAPTURE(value);
          CHECK(text.empty() == !wrong);
          if (!wrong) continue;
          CHECK(has(text, path + ": layer \"a\", parameter \"a/" + std::to_string(parameter) +
                              "\": its state has the value "));
          CHECK(has(text, "and that of type: \"" + name_of(rule) + "\" are squares"));
        }
}
