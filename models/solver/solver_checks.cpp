#include "models/solver/solver_checks.hpp"

#include "models/solver/goals.hpp"
#include "models/solver/outer_steps.hpp"
#include "models/solver/solver_file.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <cmath>

namespace poseidon {

namespace {

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// `what "word" is none of Caffe's.` with the nearest, or all.
std::string unknown(const std::string& what, const std::string& word,
                    const std::vector<std::string>& known) {
  auto hint = did_you_mean(word, known);
  if (hint.empty()) hint = " It can be " + comma_list(known) + ".";
  return what + " \"" + word + "\" is none of Caffe's." + hint;
}

void check_cosine(const solver_source& s) {
  const auto& ours = s.spec.poseidon();
  const auto at = s.at("poseidon");
  require(ours.lr_policy() == "cosine", at,
          "poseidon { lr_policy: \"" + ours.lr_policy() +
              "\" } can only be \"cosine\". Caffe's policies stand in the solver itself.");
  require(s.spec.max_iter() > 0, at,
          "poseidon { lr_policy: \"cosine\" } needs a max_iter above 0, here it is " +
              std::to_string(s.spec.max_iter()) + ": the cosine ends there.");
  require(ours.lr_min() >= 0 && ours.lr_min() <= std::max(0.0f, s.spec.base_lr()), at,
          "lr_min is " + plain_number(ours.lr_min()) + ", it can be 0 to base_lr, which is " +
              plain_number(s.spec.base_lr()) + ".");
}

void check_warmup(const solver_source& s) {
  const auto& ours = s.spec.poseidon();
  require(ours.warmup_from() >= 0 && ours.warmup_from() <= 1, s.at("poseidon"),
          "warmup_from is " + plain_number(ours.warmup_from()) +
              ", it can be 0 to 1: the part of the learning rate with which training begins.");
  require(ours.warmup_iter() > 0 || !ours.has_warmup_from(), s.at("poseidon"),
          "warmup_from is given without warmup_iter, the number of iterations of the warm-up.");
}

void check_goals_of(const solver_source& s) {
  try {
    check_goals(s.spec);
  } catch (const spec_error& e) {
    throw spec_error(s.at("poseidon"), e.what());
  }
}

void check_outer_steps_of(const solver_source& s) {
  try {
    check_outer_steps(s.spec);
  } catch (const spec_error& e) {
    throw spec_error(s.at("poseidon"), e.what());
  }
}

void check_policy(const solver_source& s) {
  const auto& spec = s.spec;
  const auto& ours = spec.poseidon();
  if (ours.has_lr_policy()) return check_cosine(s);
  const auto& policy = spec.lr_policy();
  require(policy != "cosine", s.at("lr_policy"),
          "lr_policy \"cosine\" is none of Caffe's but Poseidon's own: write "
          "poseidon { lr_policy: \"cosine\" } instead.");
  if (policy.empty())
    throw spec_error(s.at("base_lr"),
                     "lr_policy is missing. It can be " + comma_list(lr_policies()) + ".");
  require(contains(lr_policies(), policy), s.at("lr_policy"),
          unknown("lr_policy", policy, lr_policies()));
  const auto needs = [&](bool holds, const std::string& text) {
    require(holds, s.at("lr_policy"), "lr_policy \"" + policy + "\" needs " + text);
  };
  if (policy == "step" || policy == "sigmoid")
    needs(spec.stepsize() > 0,
          "a stepsize above 0, here it is " + std::to_string(spec.stepsize()) + ".");
  if (policy == "poly")
    needs(spec.max_iter() > 0,
          "a max_iter above 0, here it is " + std::to_string(spec.max_iter()) + ".");
  if (policy != "fixed" && policy != "poly")
    needs(spec.gamma() >= 0,
          "a gamma that is not negative, here it is " + plain_number(spec.gamma()) + ".");
  for (int i = 1; i < spec.stepvalue_size(); ++i)
    require(spec.stepvalue(i) > spec.stepvalue(i - 1), s.at("stepvalue", i),
            "stepvalue " + std::to_string(spec.stepvalue(i)) + " follows " +
                std::to_string(spec.stepvalue(i - 1)) + ". They must rise.");
}

void check_rule(const solver_source& s) {
  const auto& spec = s.spec;
  require(contains(solver_types(), spec.type()), s.at("type"),
          unknown("type", spec.type(), solver_types()));
  if (spec.type() == "AdaGrad" || spec.type() == "RMSProp")
    require(spec.momentum() == 0, s.at("momentum"),
            "momentum is " + plain_number(spec.momentum()) + ", but " + spec.type() +
                " has none. Delete it, or use type: \"SGD\".");
  if (spec.type() == "RMSProp")
    require(
        spec.rms_decay() >= 0 && spec.rms_decay() < 1, s.at("rms_decay"),
        "rms_decay is " + plain_number(spec.rms_decay()) + ", it must be at least 0 and below 1.");
  const std::vector<std::string> norms{"L1", "L2"};
  if (spec.weight_decay() != 0)
    require(contains(norms, spec.regularization_type()), s.at("regularization_type"),
            "regularization_type \"" + spec.regularization_type() +
                "\" is none of Caffe's. It can be L1, L2.");
}

void check_counts(const solver_source& s) {
  const auto at_least_one = [&](const char* field, std::int64_t value) {
    require(value >= 1, s.at(field),
            std::string(field) + " is " + std::to_string(value) + ", it must be at least 1.");
  };
  require(std::isfinite(s.spec.base_lr()), s.at("base_lr"),
          "base_lr is " + plain_number(s.spec.base_lr()) + ", it must be a finite number.");
  at_least_one("iter_size", s.spec.iter_size());
  at_least_one("average_loss", s.spec.average_loss());
  for (int i = 0; i < s.spec.test_iter_size(); ++i)
    require(s.spec.test_iter(i) > 0, s.at("test_iter", i),
            "test_iter is " + std::to_string(s.spec.test_iter(i)) + ", it must be at least 1.");
  const auto staleness = s.spec.poseidon().staleness();
  require(staleness <= max_staleness, s.at("poseidon"),
          "staleness is " + std::to_string(staleness) + ", it can be 0 to " +
              std::to_string(max_staleness) +
              ": every iteration of it costs a node the memory of the parameters and gradients "
              "once more.");
  for (const auto& [field, value] : {std::pair{"max_iter", s.spec.max_iter()},
                                     {"snapshot", s.spec.snapshot()},
                                     {"display", s.spec.display()},
                                     {"test_interval", s.spec.test_interval()}})
    require(value >= 0, s.at(field),
            std::string(field) + " is " + std::to_string(value) + ", it cannot be negative.");
}

}  // namespace

void require(bool holds, const spec_position& where, const std::string& text) {
  if (!holds) throw spec_error(where, text);
}

void check_fields(const solver_source& s) {
  check_rule(s);
  check_policy(s);
  check_warmup(s);
  check_goals_of(s);
  check_counts(s);
  check_outer_steps_of(s);
}

/// Caffe trains with all of these and says nothing.
std::vector<std::string> warnings_of(const solver_source& s) {
  const auto& spec = s.spec;
  std::vector<std::string> lines;
  const auto warn = [&](const char* field, const std::string& text) {
    lines.push_back(to_string(s.at(field)) + ": " + text);
  };
  if (!spec.has_base_lr())
    warn("lr_policy", "base_lr is missing, so it is 0 and nothing is learned.");
  if (spec.base_lr() < 0)
    warn("base_lr", "base_lr is " + plain_number(spec.base_lr()) +
                        ": below 0, each step makes the loss larger. Is the sign meant?");
  if (spec.momentum() >= 1)
    warn("momentum", "momentum is " + plain_number(spec.momentum()) +
                         ": at 1 or above the steps grow without end. It is usually 0.9.");
  const auto& policy = policy_of(spec);
  if (spec.poseidon().has_lr_policy() && spec.has_lr_policy() && policy != spec.lr_policy())
    warn("lr_policy", "lr_policy \"" + spec.lr_policy() +
                          "\" is not used, because poseidon { lr_policy: \"" + policy +
                          "\" } takes its place.");
  if (spec.max_iter() > 0 &&
      spec.poseidon().warmup_iter() >= static_cast<unsigned>(spec.max_iter()))
    warn("poseidon", "warmup_iter is " + std::to_string(spec.poseidon().warmup_iter()) +
                         " and max_iter " + std::to_string(spec.max_iter()) +
                         ": training ends before the warm-up does.");
  if (!spec.has_gamma() && (policy == "step" || policy == "exp" || policy == "multistep"))
    warn("lr_policy", "lr_policy \"" + policy +
                          "\" without gamma: gamma is 0, and so is the learning rate after the "
                          "first step.");
  if (policy == "multistep" && spec.stepvalue_size() == 0)
    warn("lr_policy", "lr_policy \"multistep\" without stepvalue never changes the learning rate.");
  if (spec.test_interval() > 0 && spec.test_iter_size() == 0)
    warn("test_interval", "test_interval is " + std::to_string(spec.test_interval()) +
                              ", but there is no test_iter, so nothing is tested. Say how many "
                              "batches a test has, as in test_iter: 100.");
  return lines;
}

}  // namespace poseidon
