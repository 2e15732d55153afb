#include "actors/client/program.hpp"

#include "models/words.hpp"

namespace poseidon {

namespace {

std::string describe(const declared_parameter& p) {
  return '"' + p.name + "\" " + to_string(p.shape);
}

}  // namespace

std::string difference(const std::vector<declared_parameter>& here,
                       const std::vector<declared_parameter>& of_worker_0) {
  const std::string remedy = ". All workers need the same model";
  for (std::size_t i = 0; i < here.size() && i < of_worker_0.size(); ++i)
    if (here[i].name != of_worker_0[i].name || here[i].shape != of_worker_0[i].shape)
      return "parameter " + std::to_string(i) + " is " + describe(of_worker_0[i]) +
             " on worker 0 and " + describe(here[i]) + " here" + remedy;
  if (here.size() == of_worker_0.size()) return {};
  const auto& longer = here.size() > of_worker_0.size() ? here : of_worker_0;
  const auto common = std::min(here.size(), of_worker_0.size());
  return "worker 0 has " + plural(of_worker_0.size(), "parameter") + " and this worker " +
         std::to_string(here.size()) + "; the first that only one has is " +
         describe(longer[common]) + remedy;
}

}  // namespace poseidon
