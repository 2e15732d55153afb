#include "models/files/newest_state.hpp"

#include "models/files/snapshot.hpp"

#include <charconv>
#include <cstdint>
#include <map>

namespace poseidon {

namespace {

/// N of "PREFIX_iter_N.solverstate"; nothing: the name is another one.
std::optional<std::uint64_t> iteration_in(std::string_view name, const std::string& beginning) {
  if (!name.starts_with(beginning)) return std::nullopt;
  name.remove_prefix(beginning.size());
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), n);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view ending(end, static_cast<std::size_t>(name.data() + name.size() - end));
  if (ending != ".solverstate" && ending != ".solverstate.h5") return std::nullopt;
  return n;
}

/// Why training cannot go on from this state; empty: it can.
std::string fault_of(const std::filesystem::path& state) {
  try {
    const auto head = read_resume_point(state);
    if (head.learned_net.empty()) return "";
    const auto weights = weights_beside(state, head.learned_net);
    std::error_code ignored;
    if (!std::filesystem::exists(weights, ignored))
      return state.string() + ": its weights, " + weights.string() + ", are not there";
    // A file that was cut short says so here, and not when the run has begun.
    (void)read_caffemodel(weights);
    return "";
  } catch (const std::exception& e) {
    return e.what();  // begins with the file's name
  }
}

}  // namespace

std::filesystem::path weights_beside(const std::filesystem::path& state,
                                     const std::filesystem::path& named) {
  std::error_code ignored;
  const auto beside = state.parent_path() / named.filename();
  const bool moved = !std::filesystem::exists(named, ignored);
  return moved && std::filesystem::exists(beside, ignored) ? beside : named;
}

found_state newest_state(const std::filesystem::path& prefix) {
  const auto folder = prefix.has_parent_path() ? prefix.parent_path() : std::filesystem::path(".");
  const auto beginning = prefix.filename().string() + "_iter_";
  std::multimap<std::uint64_t, std::filesystem::path, std::greater<>> states;  // newest first
  std::error_code none;
  for (std::filesystem::directory_iterator it(folder, none), end; !none && it != end;
       it.increment(none))
    if (const auto n = iteration_in(it->path().filename().string(), beginning))
      states.emplace(*n, it->path());
  found_state out;
  for (const auto& [n, path] : states) {
    const auto fault = fault_of(path);
    if (fault.empty()) {
      out.path = path;
      break;
    }
    out.passed_over.push_back("--resume auto passes over " + fault);
  }
  return out;
}

}  // namespace poseidon
