#include "actors/training/finished_work.hpp"

#include <algorithm>
#include <cmath>

namespace poseidon {

finished_work result_reader::finished(const issue_work& work) {
  const auto& label = work.label;
  finished_work out{{label.pass, label.backward, {}}, {}};
  if (!work.results.read_outputs) return out;
  auto& outputs = out.done.outputs;
  outputs = work.results.read_outputs();
  const bool finite =
      std::all_of(outputs.begin(), outputs.end(), [](float v) { return std::isfinite(v); });
  if (finite || reported_) return out;
  reported_ = true;
  out.nonfinite =
      nonfinite_found{label.pass, first_nonfinite_().value_or(std::string(label.layer))};
  return out;
}

}  // namespace poseidon
