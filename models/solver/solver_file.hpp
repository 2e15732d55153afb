// models/solver/solver_file.hpp - a solver specification, its nets, its rule and its learning rates.
#pragma once
#include "models/caffe.hpp"
#include "models/net/net_builder.hpp"
#include "models/solver/solver_rule.hpp"
#include "models/spec/net_file.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// The largest s in `poseidon { staleness: s }`.
inline constexpr std::uint32_t max_staleness = 100;

struct solver_file {
  ::caffe::SolverParameter spec;  ///< upgraded (solver_type became type)
  spec_position where;
  net_file train_net;
  net_state train_state;
  std::vector<net_file> test_nets;
  std::vector<net_state> test_states;
  /// Files of first values; each is copied over the values of those before it.
  std::vector<std::filesystem::path> weights;
  /// What is valid in Caffe, too, but hardly meant: a line for each, with its place.
  std::vector<std::string> warnings;
};

/// "a.caffemodel, b.caffemodel" as two paths: Caffe accepts several files of weights in one word.
[[nodiscard]] std::vector<std::filesystem::path> split_paths(const std::string& text);

/// The names that Caffe gives to rules (`type`) and to learning-rate policies (`lr_policy`).
[[nodiscard]] std::vector<std::string> solver_types();
[[nodiscard]] std::vector<std::string> lr_policies();

/// Reads the solver and the nets that it names: relative to the working directory, as Caffe does,
/// or, where no such file is there, to the solver's own folder.
///
/// Errors   spec_error with file and line: unknown type, policy or regularisation, no net or two,
///          step without stepsize, test_iter and test nets that do not match, ...
[[nodiscard]] solver_file read_solver(const std::filesystem::path& path);

/// Resolves a message instead of a file: the first node sends one to a joining node. Inline nets are used
/// unchanged.
[[nodiscard]] solver_file resolve_solver(const ::caffe::SolverParameter& spec,
                                         const spec_position& where);

/// One message that needs no other file: nets inline, every state explicit. resolve_solver() of it
/// gives an equal solver_file except for the places of the layers.
[[nodiscard]] ::caffe::SolverParameter self_contained(const solver_file& file);

[[nodiscard]] solver_rule rule_of(const ::caffe::SolverParameter& solver);

/// A rule by its name, one of solver_types(), and the name.
[[nodiscard]] std::optional<rule_kind> rule_named(const std::string& type);
[[nodiscard]] std::string name_of(rule_kind kind);

/// The name of the policy in force: that of `poseidon { lr_policy }`, else the solver's.
[[nodiscard]] const std::string& policy_of(const ::caffe::SolverParameter& solver);

/// The learning rate of an iteration: Caffe's for its policies (fixed, step, exp, inv, multistep, poly, sigmoid), half a
/// cosine for `poseidon { lr_policy: "cosine" }`; during a warm-up a part of it. It depends on the iteration alone, so a
/// resumed run has the same rates.
[[nodiscard]] float learning_rate(const ::caffe::SolverParameter& solver, std::uint64_t iteration);

/// The number of steps of `step` or `multistep` taken before this iteration; 0 with other policies.
[[nodiscard]] std::uint64_t current_step(const ::caffe::SolverParameter& solver,
                                         std::uint64_t iteration);

/// The update of a chunk of parameter `p` in an iteration: the solver's rates times the parameter's own.
[[nodiscard]] rule_step step_of(const ::caffe::SolverParameter& solver, const net_parameter& p,
                                std::uint64_t iteration, float scale);

}  // namespace poseidon
