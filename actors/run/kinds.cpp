#include "actors/run/kinds.hpp"

#include "messages/ids.hpp"
#include "models/fingerprint.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace poseidon {

using difference = progress::promise::difference;

std::vector<frames::member> kinds_of(const std::vector<frames::member>& nodes) {
  std::vector<frames::member> out;
  for (const auto& n : nodes)
    if (std::none_of(out.begin(), out.end(),
                     [&](const auto& k) { return k.fingerprint == n.fingerprint; }))
      out.push_back(n);
  return out;
}

std::vector<frames::member> with_kinds(const std::vector<frames::member>& members,
                                       const std::vector<frames::member>& kinds) {
  auto out = members;
  for (const auto& k : kinds)
    if (std::none_of(members.begin(), members.end(),
                     [&](const auto& m) { return m.fingerprint == k.fingerprint; }))
      out.push_back(k);
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.seat < b.seat; });
  return out;
}

namespace {

struct owned_trait {
  std::uint32_t seat = 0;
  trait of;
};

constexpr std::size_t most_workers = 4, most_groups = 3;  // in a sentence

std::string workers(const std::vector<std::uint32_t>& seats) {
  if (seats.size() == 1) return "worker " + std::to_string(seats.front());
  const bool all = seats.size() <= most_workers;
  const auto named = all ? seats.size() - 1 : most_workers;
  std::string text = "workers ";
  for (std::size_t i = 0; i < named; ++i) text += (i > 0 ? ", " : "") + std::to_string(seats[i]);
  return text + " and " +
         (all ? std::to_string(seats.back()) : std::to_string(seats.size() - named) + " more");
}

/// "expf:1f03ab22,tanhf:90cc0d71", by function.
std::map<std::string, std::string> functions_of(std::string_view value) {
  std::map<std::string, std::string> out;
  while (!value.empty()) {
    const auto one = value.substr(0, value.find(','));
    value.remove_prefix(std::min(value.size(), one.size() + 1));
    const auto colon = std::min(one.size(), one.find(':'));
    out[std::string(one.substr(0, colon))] = std::string(one.substr(colon));
  }
  return out;
}

/// Those functions that do not give the same values everywhere.
std::vector<std::string> differing_functions(const std::vector<owned_trait>& of_nodes) {
  std::set<std::string> names;
  const auto first = functions_of(of_nodes.front().of.value);
  for (const auto& t : of_nodes) {
    const auto other = functions_of(t.of.value);
    for (const auto& [name, sum] : first)
      if (!other.contains(name) || other.at(name) != sum) names.insert(name);
    for (const auto& [name, sum] : other)
      if (!first.contains(name)) names.insert(name);
  }
  return {names.begin(), names.end()};
}

/// What a node tells under this name, were it more than once; no value: nothing.
trait told(const fingerprint& by, const std::string& name) {
  trait out{name, ""};
  bool first = true;
  for (const auto& t : by) {
    if (t.name != name) continue;
    out.value += (first ? "" : " and ") + t.value;
    out.shown += t.shown;
    first = false;
  }
  return out;
}

/// By value in the order of the workers; values that people could not tell apart get a number.
difference grouped(const std::string& what, const std::vector<owned_trait>& of_nodes) {
  difference out{what, {}};
  std::vector<std::string> values;
  std::map<std::string, int> shown;
  for (const auto& t : of_nodes) {
    const auto at = std::find(values.begin(), values.end(), t.of.value);
    if (at != values.end()) {
      out.who[static_cast<std::size_t>(at - values.begin())].second.push_back(t.seat);
      continue;
    }
    values.push_back(t.of.value);
    auto text = !t.of.shown.empty() ? t.of.shown : t.of.value.empty() ? "none" : t.of.value;
    if (const int before = shown[text]++; before > 0)
      text += ", build " + std::to_string(before + 1);
    out.who.push_back({std::move(text), {t.seat}});
  }
  return out;
}

}  // namespace

std::vector<difference> differences_of(const std::vector<frames::member>& nodes) {
  std::vector<std::string> names;  // in the order in which nodes tell them
  std::vector<fingerprint> prints;
  for (const auto& n : nodes) {
    prints.push_back(decode_fingerprint(n.fingerprint));
    for (const auto& t : prints.back())
      if (t.name != trait_names::varies &&
          std::find(names.begin(), names.end(), t.name) == names.end())
        names.push_back(t.name);
  }
  std::vector<difference> out;
  for (const auto& name : names) {
    std::vector<owned_trait> of_nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      of_nodes.push_back({value(nodes[i].seat), told(prints[i], name)});
    const bool same = std::all_of(of_nodes.begin(), of_nodes.end(), [&](const auto& t) {
      return t.of.value == of_nodes.front().of.value;
    });
    if (same) continue;
    const bool functions = name == trait_names::c_library;
    out.push_back(
        grouped(functions ? comma_list(differing_functions(of_nodes)) + " of the C library" : name,
                of_nodes));
    if (name == trait_names::device) break;
  }
  return out;
}

std::string sentence_of(const difference& d) {
  std::string text = d.what == trait_names::instructions ? "kernels use "
                     : d.what == trait_names::caches     ? "a core's caches have "
                     : d.what == trait_names::device || d.what == trait_names::processor
                         ? "the " + d.what + " is "
                         : d.what + (d.what.ends_with('s') ? " are " : " is ");
  for (std::size_t g = 0; g < d.who.size(); ++g) {
    if (g == most_groups && d.who.size() > most_groups + 1)
      return text + ", other ones on " + plural(d.who.size() - g, "other kind") + " of nodes";
    text += (g > 0 ? ", " : "") + d.who[g].first + " on " + workers(d.who[g].second);
  }
  return text;
}

std::optional<std::string> remedy_of(const std::vector<difference>& differences,
                                     const std::vector<frames::member>& nodes) {
  if (differences.size() != 1) return std::nullopt;
  if (differences.front().what == trait_names::products) return "the same --math on every node";
  if (differences.front().what != trait_names::instructions) return std::nullopt;
  // What all processors of a family have, from the newest family to the oldest.
  constexpr std::array families{"AVX512_CORE", "AVX2", "AVX", "SSE41"};
  constexpr std::string_view newest = "AVX512";
  std::size_t oldest = 0;
  for (const auto& n : nodes)
    for (const auto& t : decode_fingerprint(n.fingerprint)) {
      if (t.name != trait_names::instructions) continue;
      const std::size_t family = t.value.starts_with(newest)        ? 0
                                 : t.value.starts_with(families[1]) ? 1
                                 : t.value == families[2]           ? 2
                                 : t.value == families[3]           ? 3
                                                                    : families.size();
      oldest = std::max(oldest, family);
    }
  if (oldest == families.size()) return std::nullopt;
  return "ONEDNN_MAX_CPU_ISA=" + std::string(families[oldest]) +
         " in the environment of every node";
}

std::string varying_of(const std::vector<frames::member>& nodes) {
  std::vector<owned_trait> those;
  for (const auto& n : nodes)
    for (const auto& t : decode_fingerprint(n.fingerprint))
      if (t.name == trait_names::varies) those.push_back({value(n.seat), t});
  if (those.empty()) return {};
  std::string text;
  for (const auto& [why, seats] : grouped("", those).who)
    text += (text.empty() ? "" : ", ") + why + " on " + workers(seats);
  return text;
}

bool all_multiply_bf16(const std::vector<frames::member>& nodes) {
  return !nodes.empty() && std::all_of(nodes.begin(), nodes.end(), [](const frames::member& n) {
    return told(decode_fingerprint(n.fingerprint), std::string(trait_names::products)).value ==
           product_names::bf16;
  });
}

}  // namespace poseidon
