#include "models/spec/spec_kind.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace poseidon {

namespace {

/// The place behind the comment (its line end excluded) or the quoted text that begins at `at`.
std::size_t end_of_text(const std::string& text, std::size_t at) {
  const char quote = text[at];
  for (++at; at < text.size() && text[at] != '\n'; ++at) {
    if (quote == '#') continue;
    if (text[at] == '\\')
      ++at;
    else if (text[at] == quote)
      return at + 1;
  }
  return at;
}

/// The place of the first character from `at` on that is neither white space, as the text format has it, nor in a comment.
std::size_t next_sign(const std::string& text, std::size_t at) {
  while (at < text.size()) {
    if (text[at] == '#')
      at = end_of_text(text, at);
    else if (std::string_view(" \t\n\r\v\f").find(text[at]) != std::string_view::npos)
      ++at;
    else
      break;
  }
  return at;
}

bool is_one_of(const std::string& text, std::size_t at, std::string_view signs) {
  return at < text.size() && signs.find(text[at]) != std::string_view::npos;
}

bool has_any(const std::set<std::string>& names, std::initializer_list<const char*> wanted) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const char* name) { return names.count(name) > 0; });
}

}  // namespace

std::set<std::string> outer_fields(const std::string& text) {
  std::set<std::string> names;
  int depth = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '#' || c == '"' || c == '\'') {
      at = end_of_text(text, at);
    } else if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') {
      const auto begin = at;
      while (at < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_'))
        ++at;
      if (depth == 0 && is_one_of(text, next_sign(text, at), ":{<["))
        names.insert(text.substr(begin, at - begin));
    } else {
      if (is_one_of(text, at, "{<[")) ++depth;
      if (is_one_of(text, at, "}>]")) --depth;
      ++at;
    }
  }
  return names;
}

spec_kind kind_of_spec(const std::set<std::string>& outer_fields) {
  const bool layers = has_any(outer_fields, {"layer", "layers"});
  if (layers && has_any(outer_fields, {"batch", "measured", "gflop_s"})) return spec_kind::profile;
  if (has_any(outer_fields,
              {"net", "net_param", "train_net", "train_net_param", "base_lr", "lr_policy",
               "max_iter", "solver_type", "snapshot_prefix", "test_iter"}))
    return spec_kind::solver;
  if (layers || has_any(outer_fields, {"input", "input_dim", "input_shape"})) return spec_kind::net;
  return spec_kind::other;
}

}  // namespace poseidon
