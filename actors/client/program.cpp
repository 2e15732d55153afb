#include "actors/client/program.hpp"

#include "models/words.hpp"

#include <algorithm>
#include <string_view>

namespace poseidon {

namespace {

std::string describe(const declared_parameter& p) {
  return '"' + p.name + "\" " + to_string(p.shape);
}

/// A program declares small parameters as one, whose name lists them: the first two that differ.
constexpr std::string_view between = " + ";
std::string first_difference(std::string_view of_worker_0, std::string_view here) {
  const auto next = [](std::string_view& of) {
    const auto end = std::min(of.find(between), of.size());
    const auto part = of.substr(0, end);
    of.remove_prefix(std::min(end + between.size(), of.size()));
    return part.empty() ? "nothing more" : '"' + std::string(part) + '"';
  };
  while (true) {
    const auto theirs = next(of_worker_0);
    const auto ours = next(here);
    if (theirs != ours || (of_worker_0.empty() && here.empty()))
      return theirs + " on worker 0 and " + ours + " here";
  }
}

}  // namespace

std::string difference(const std::vector<declared_parameter>& here,
                       const std::vector<declared_parameter>& of_worker_0) {
  const std::string remedy = ". All workers need the same model";
  for (std::size_t i = 0; i < here.size() && i < of_worker_0.size(); ++i) {
    const auto &ours = here[i], &theirs = of_worker_0[i];
    if (ours.name == theirs.name && ours.shape == theirs.shape) continue;
    if (ours.name != theirs.name && (ours.name + theirs.name).find(between) != std::string::npos)
      return "among the small parameters that travel together is " +
             first_difference(theirs.name, ours.name) + remedy;
    return "parameter " + std::to_string(i) + " is " + describe(theirs) + " on worker 0 and " +
           describe(ours) + " here" + remedy;
  }
  if (here.size() == of_worker_0.size()) return {};
  const auto& longer = here.size() > of_worker_0.size() ? here : of_worker_0;
  const auto common = std::min(here.size(), of_worker_0.size());
  return "worker 0 has " + plural(of_worker_0.size(), "parameter") + " and this worker " +
         std::to_string(here.size()) + "; the first that only one has is " +
         describe(longer[common]) + remedy;
}

}  // namespace poseidon
