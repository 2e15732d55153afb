#include "actors/telemetry/type_graph.hpp"

#include <algorithm>
#include <set>

namespace poseidon {

namespace {

bool lists(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<actor_type> merged(std::vector<actor_type> types) {
  std::vector<actor_type> out;
  for (auto& t : types) {
    const auto same =
        std::find_if(out.begin(), out.end(), [&](auto& had) { return had.name == t.name; });
    if (same == out.end()) {
      out.push_back(std::move(t));
      continue;
    }
    same->accepts.insert(same->accepts.end(), t.accepts.begin(), t.accepts.end());
    same->sends.insert(same->sends.end(), t.sends.begin(), t.sends.end());
  }
  return out;
}

std::string to_mermaid(std::vector<actor_type> types) {
  std::sort(types.begin(), types.end(), [](auto& a, auto& b) { return a.name < b.name; });
  std::string out = "flowchart LR\n";
  for (const auto& t : types) out += "  " + std::string(t.name) + "\n";
  for (const auto& from : types) {
    for (const auto& to : types) {
      std::set<std::string_view> carried;
      for (const auto m : from.sends)
        if (lists(to.accepts, m)) carried.insert(m);
      if (carried.empty()) continue;
      std::string label;
      for (const auto m : carried) label += (label.empty() ? "" : "<br/>") + std::string(m);
      out += "  " + std::string(from.name) + " -- \"" + label + "\" --> " + std::string(to.name) +
             "\n";
    }
  }
  return out;
}

std::vector<std::string> unheard(const std::vector<actor_type>& types) {
  std::vector<std::string> out;
  for (const auto& from : types) {
    for (const auto m : from.sends) {
      const bool heard = std::any_of(types.begin(), types.end(),
                                     [&](const actor_type& to) { return lists(to.accepts, m); });
      if (!heard) out.push_back(std::string(from.name) + " sends " + std::string(m));
    }
  }
  return out;
}

}  // namespace poseidon
