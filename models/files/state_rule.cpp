#include "models/files/state_rule.hpp"

#include "models/solver/solver_file.hpp"
#include "models/spec/spec_file.hpp"
#include "models/words.hpp"

#include <algorithm>

namespace poseidon {

namespace {

std::string quoted(const std::string& type) {
  return "type: \"" + type + "\"";
}

std::string weights_alone(const std::string& file) {
  return "begin with the weights alone (--weights " + file +
         " in place of the state), which counts iterations from 0";
}

}  // namespace

void check_rule(const ::caffe::SolverState& state, rule_kind wanted,
                const std::filesystem::path& path) {
  if (!state.poseidon().has_rule()) return;
  const auto& wrote = state.poseidon().rule();
  const auto known = rule_named(wrote);
  if (known && have_one_state(*known, wanted)) return;
  const auto file = state.learned_net().empty() ? "FILE.caffemodel" : state.learned_net();
  throw spec_error({path.string(), 0}, "a solver of " + quoted(wrote) + " wrote this state, and " +
                                           quoted(name_of(wanted)) +
                                           " cannot go on with it: its arrays mean something else. "
                                           "Resume with " +
                                           quoted(wrote) + ", or " + weights_alone(file) + ".");
}

void check_squares(std::span<const float> values, const net& n, std::size_t parameter,
                   rule_kind wanted, std::size_t slot, const std::filesystem::path& path) {
  if (!holds_squares(wanted, slot)) return;
  const auto bad = std::find_if(values.begin(), values.end(), [](float v) { return !(v >= 0); });
  if (bad == values.end()) return;
  const auto& p = n.parameters[parameter];
  throw spec_error({path.string(), 0}, "layer \"" + n.layers[p.layer].name + "\", parameter \"" +
                                           p.name + "\": its state has the value " +
                                           plain_number(*bad) + ", and that of " +
                                           quoted(name_of(wanted)) +
                                           " are squares, which are never negative. Likely cause: "
                                           "a solver of another type wrote it, "
                                           "as the momentum of type: \"SGD\" has both signs. "
                                           "Resume with the type that wrote it, or " +
                                           weights_alone("FILE.caffemodel") + ".");
}

}  // namespace poseidon
