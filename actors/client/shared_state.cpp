#include "actors/client/shared_state.hpp"

#include "messages/wire/codec.hpp"
#include "messages/wire/digest.hpp"
#include "models/words.hpp"

#include <algorithm>

namespace poseidon {

namespace {

std::string describe(const std::string& name, const std::string& kind, std::uint64_t size) {
  return '"' + name + "\" (" + kind + ", " + plural(size, "byte") + ")";
}

std::string describe(const shared_memory& m) {
  return describe(m.name, m.kind, m.bytes.size());
}

std::string describe(const frames::shared_entry& e) {
  return describe(e.name, e.kind, e.size);
}

}  // namespace

std::vector<frames::shared_entry> entries_of(const std::vector<shared_memory>& here) {
  std::vector<frames::shared_entry> out;
  for (const auto& m : here) out.push_back({m.name, m.kind, m.bytes.size(), digest_of(m.bytes)});
  return out;
}

std::vector<std::uint64_t> pieces_of(std::uint64_t size) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t first = 0; first < size; first += shared_piece_bytes) out.push_back(first);
  return out;
}

std::string difference(const std::vector<shared_memory>& here,
                       const std::vector<frames::shared_entry>& of_worker_0) {
  const std::string remedy = ". All workers need the same program and model";
  const auto common = std::min(here.size(), of_worker_0.size());
  for (std::size_t i = 0; i < common; ++i) {
    const auto own = describe(here[i]), first = describe(of_worker_0[i]);
    if (own != first)
      return "shared state " + std::to_string(i) + " is " + first + " on worker 0 and " + own +
             " here" + remedy;
  }
  if (here.size() == of_worker_0.size()) return {};
  return "worker 0 shares " + std::to_string(of_worker_0.size()) +
         " pieces of state and this worker " + std::to_string(here.size()) +
         "; the first that only one has is " +
         (here.size() > common ? describe(here[common]) : describe(of_worker_0[common])) + remedy;
}

}  // namespace poseidon
