#include "actors/client/program.hpp"

#include "messages/wire/digest.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <string_view>

namespace poseidon {

namespace {

std::string describe(const declared_parameter& p) {
  return '"' + p.name + "\" " + to_string(p.shape) + (p.given ? " (given by worker 0)" : "") +
         (p.bundle ? " (a bundle)" : "");
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

std::vector<frames::byte_digest> program::first_digests() const {
  std::vector<frames::byte_digest> out;
  for (std::size_t i = 0; i < declared.size(); ++i) out.push_back(digest_of(first_bytes(i)));
  return out;
}

void program::take_equal(const std::vector<frames::byte_digest>& parameters,
                         const std::vector<frames::shared_entry>& of_worker_0) {
  has_parameters.clear();
  for (std::size_t i = 0; i < declared.size(); ++i)
    has_parameters.push_back(first_values[i] != nullptr &&
                             digest_of(first_bytes(i)) == parameters[i]);
  has_shared.clear();
  std::uint64_t missing = 0;
  for (std::size_t i = 0; i < shared.size(); ++i) {
    has_shared.push_back(digest_of(shared[i].bytes) == of_worker_0[i].digest);
    if (!has_shared[i]) missing += of_worker_0[i].size;
  }
  shared_in_flight.expect(missing);
}

std::span<const std::byte> program::first_bytes(std::size_t parameter) const {
  return std::as_bytes(std::span(first_values[parameter],
                                 static_cast<std::size_t>(count(declared[parameter].shape))));
}

std::string difference(const std::vector<declared_parameter>& here,
                       const std::vector<declared_parameter>& of_worker_0) {
  const std::string remedy = ". All workers need the same model";
  for (std::size_t i = 0; i < here.size() && i < of_worker_0.size(); ++i) {
    const auto &ours = here[i], &theirs = of_worker_0[i];
    if (describe(ours) == describe(theirs)) continue;
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
