#include "actors/client/program.hpp"

#include "messages/wire/digest.hpp"
#include "models/words.hpp"

namespace poseidon {

namespace {

std::string describe(const declared_parameter& p) {
  return '"' + p.name + "\" " + to_string(p.shape) + (p.given ? " (given by worker 0)" : "");
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
  for (std::size_t i = 0; i < here.size() && i < of_worker_0.size(); ++i)
    if (describe(here[i]) != describe(of_worker_0[i]))
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
