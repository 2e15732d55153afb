// The option --routes: a part of routes.hpp.
#include "models/first_bytes.hpp"
#include "models/plan/routes.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

namespace poseidon {

namespace {

/// The number in "@20".
std::uint64_t clock_of(const std::string& word, const spec_position& at) {
  std::uint64_t clock = 0;
  const auto* end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data() + 1, end, clock);
  if (error == std::errc{} && stopped == end) return clock;
  throw spec_error(at, "expected the number of an iteration after @, found \"" + word + "\".");
}

/// What a word of a file means; empty: nothing.
std::optional<route> route_called(const std::string& word, std::uint32_t rank) {
  if (word == "ps") return route::parameter_server;
  if (word == "sfb") return route::factor_broadcast;
  if (word == "lowrank") return lowrank_of(rank > 0 ? rank : default_rank);
  for (const auto r :
       {route::lowrank_4, route::lowrank_8, route::lowrank_4_bfloat16, route::lowrank_8_bfloat16})
    if (word == to_string(r)) return r;
  return std::nullopt;
}

/// A line of the file; empty: it names no layer.
std::optional<route_option::entry> entry_in(const std::string& text, const spec_position& at,
                                            std::uint32_t rank) {
  std::istringstream words(text.substr(0, text.find('#')));
  std::string where, more;
  route_option::entry e;
  e.line = at.line;
  if (!(words >> e.layer)) return std::nullopt;
  if (e.layer.front() == '@') {
    e.clock = clock_of(e.layer, at);
    words >> e.layer;
  }
  words >> where;
  const auto called = route_called(where, rank);
  if (!called || words >> more)
    throw spec_error(at,
                     "expected \"layer ps\", \"layer sfb\" or \"layer lowrank\", after "
                     "\"@iteration\" where it is to hold from that iteration on; found \"" +
                         text + "\".");
  e.where = *called;
  return e;
}

/// A file's lines.
void read_entries(route_option& parsed) {
  std::ifstream in(parsed.file);
  if (!in)
    throw spec_error("--routes " + parsed.file +
                     ": it is none of auto, ps, sfb and lowrank, and no file of that name can be "
                     "read.");
  skip_byte_order_mark(in);
  std::string text;
  for (int line = 1; std::getline(in, text); ++line) {
    const spec_position at{parsed.file, line};
    const auto e = entry_in(text, at, parsed.rank);
    if (!e) continue;
    for (const auto& other : parsed.entries)
      if (other.layer == e->layer && other.clock == e->clock)
        throw spec_error(
            at, "layer \"" + e->layer + "\" has a route " +
                    (e->clock > 0 ? "from iteration " + std::to_string(e->clock) + " on " : "") +
                    "in line " + std::to_string(other.line) + " already.");
    parsed.entries.push_back(*e);
  }
  std::stable_sort(parsed.entries.begin(), parsed.entries.end(),
                   [](const auto& a, const auto& b) { return a.clock < b.clock; });
}

/// A change of routes would lose what low rank has kept back, as it would lose what rounding has.
void refuse_changes(const route_option& option) {
  const route_option::entry* by_lowrank = nullptr;
  const route_option::entry* later = nullptr;
  for (const auto& e : option.entries) {
    if (rank_of(e.where) > 0 && by_lowrank == nullptr) by_lowrank = &e;
    if (e.clock > 0 && later == nullptr) later = &e;
  }
  if (by_lowrank == nullptr || later == nullptr) return;
  throw spec_error({option.file, later->line},
                   "it changes routes while training, and line " +
                       std::to_string(by_lowrank->line) + " puts \"" + by_lowrank->layer +
                       "\" on lowrank: what low rank has kept back would be lost. Leave out the "
                       "lines with @, or lowrank.");
}

}  // namespace

route_option parse_routes(const std::string& option, std::uint32_t rank) {
  using kind = route_option::kind;
  route_option parsed;
  parsed.rank = rank;
  const std::map<std::string, kind> words{{"auto", kind::automatic},
                                          {"ps", kind::server},
                                          {"sfb", kind::factors},
                                          {"lowrank", kind::lowrank}};
  const auto word = words.find(option);
  parsed.what = word == words.end() ? kind::listed : word->second;
  if (parsed.what == kind::listed) {
    parsed.file = option;
    read_entries(parsed);
    refuse_changes(parsed);
  }
  const bool may_be_lowrank = parsed.what == kind::automatic || parsed.what == kind::lowrank ||
                              std::any_of(parsed.entries.begin(), parsed.entries.end(),
                                          [](const auto& e) { return rank_of(e.where) > 0; });
  if (rank > 0 && !may_be_lowrank)
    throw spec_error("--rank " + std::to_string(rank) + ": --routes " + option +
                     " puts no layer on lowrank. Leave out --rank, or give --routes auto, lowrank, "
                     "or a file with lines `layer lowrank`.");
  return parsed;
}

}  // namespace poseidon
