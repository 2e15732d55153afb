#include "apps/node/given_options.hpp"

#include "models/spec/spec_file.hpp"
#include "models/words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <fnmatch.h>
#include <sstream>

namespace poseidon::app {

namespace {

/// "--math!=fp32" in its parts.
struct condition_parts {
  std::string option, pattern;
  bool negated = false;

  explicit condition_parts(std::string_view condition) {
    const auto equals = condition.find('=');
    if (equals == std::string_view::npos) {
      option = condition;
      return;
    }
    negated = equals > 0 && condition[equals - 1] == '!';
    option = condition.substr(0, equals - (negated ? 1 : 0));
    pattern = condition.substr(equals + 1);
  }
};

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string and_list(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " and ") + word;
  return text;
}

std::vector<std::string> names_of(const std::vector<const option_row*>& rows) {
  std::vector<std::string> names;
  for (const auto* row : rows) names.emplace_back(name_of(*row));
  return names;
}

/// "--listen HOST:PORT", as it has to be written.
std::string to_write(const std::string& condition) {
  const auto& row = row_of(condition_parts(condition).option);
  const std::string value = row.value;
  const bool optional = value.empty() || value.front() == '[';
  return std::string(name_of(row)) + (optional ? "" : " " + value);
}

}  // namespace

given_options::given_options(const CLI::App& app) {
  for (const auto& row : option_rows()) {
    const auto* const option = app.get_option_no_throw(std::string(name_of(row)));
    if (option == nullptr || option->count() == 0) continue;
    const bool is_flag = *row.value == '\0';
    if (is_flag && !option->as<bool>()) continue;  // --quiet=false
    std::string text;
    for (const auto& word : option->results()) text += (text.empty() ? "" : ",") + word;
    texts_.emplace(name_of(row), is_flag ? "" : text);
  }
}

bool given_options::holds(std::string_view conditions) const {
  const auto words = words_of(conditions);
  return std::all_of(words.begin(), words.end(), [this](const std::string& word) {
    const condition_parts wanted(word);
    const auto given = texts_.find(wanted.option);
    if (given == texts_.end()) return false;
    if (wanted.pattern.empty()) return true;
    return (::fnmatch(wanted.pattern.c_str(), given->second.c_str(), 0) == 0) != wanted.negated;
  });
}

node_role given_options::role() const {
  if (holds("--witness")) return node_role::witness;
  if (holds("--join") && !holds("--solver")) return node_role::joiner;
  return holds("--listen") || holds("--nodes!=1") ? node_role::first : node_role::alone;
}

std::vector<const option_row*> given_options::used_as(option_use use) const {
  std::vector<const option_row*> found;
  for (const auto& row : option_rows()) {
    if (!holds(name_of(row)) || use_of(row.owner, role()) != use) continue;
    const bool used_all_the_same =
        use == option_use::idle && *row.idle_unless != '\0' && holds(row.idle_unless);
    if (!used_all_the_same) found.push_back(&row);
  }
  return found;
}

void given_options::refuse_to_joiner() const {
  std::vector<const option_row*> of_outputs, others;
  for (const auto* row : used_as(option_use::refused))
    (row->owner == option_owner::reader_of_all_outputs ? of_outputs : others).push_back(row);
  const auto refuse = [](const std::vector<const option_row*>& rows, const std::string& why) {
    const bool one = rows.size() == 1;
    const std::string them = one ? "it" : "them";
    throw spec_error("--join does not go with " + comma_list(names_of(rows)) + ": " +
                     (one ? "that belongs" : "those belong") + " to the first node, " + why +
                     ". Leave " + them + " out here, and give " + them +
                     " to the first node. With --solver " + (one ? "it is" : "they are") +
                     " for the run that this node begins where there is none.");
  };
  if (!others.empty()) refuse(others, "whose choice holds for all nodes");
  if (!of_outputs.empty()) refuse(of_outputs, "because only it knows the outputs of all nodes");
}

void given_options::refuse_to_witness() const {
  const auto refused = used_as(option_use::refused);
  if (refused.empty()) return;
  throw spec_error("--witness does not go with " + comma_list(names_of(refused)) +
                   ": a witness trains nothing, so it has no net, no data, no devices and nothing "
                   "to show. Leave out " +
                   (refused.size() == 1 ? "that option" : "these options") +
                   ", or --witness where the node is to train.");
}

void given_options::require_role() const {
  if (role() == node_role::joiner) refuse_to_joiner();
  if (role() == node_role::witness) refuse_to_witness();
}

std::string given_options::as_given(std::string_view conditions) const {
  std::vector<std::string> texts;
  for (const auto& word : words_of(conditions)) {
    const condition_parts parts(word);
    const auto given = texts_.find(parts.option);
    const bool says_value = !parts.pattern.empty() && given != texts_.end();
    texts.push_back(parts.option + (says_value ? " " + given->second : ""));
  }
  return and_list(texts);
}

void given_options::require_rules() const {
  for (const auto& rule : option_rules()) {
    if (!holds(rule.one) || (*rule.unless != '\0' && holds(rule.unless))) continue;
    if (rule.what == option_rule::kind::excludes && holds(rule.other))
      throw spec_error(as_given(rule.one) + " does not go with " + as_given(rule.other) + ": " +
                       rule.why);
    if (rule.what != option_rule::kind::needs || holds(rule.other)) continue;
    std::vector<std::string> missing;
    for (const auto& word : words_of(rule.other))
      if (!holds(word)) missing.push_back(to_write(word));
    const bool several = words_of(rule.one).size() > 1;
    throw spec_error(as_given(rule.one) + (several ? " together need " : " needs ") +
                     and_list(missing) + ": " + rule.why);
  }
}

std::vector<std::string> given_options::without_effect() const {
  const auto idle = names_of(used_as(option_use::idle));
  if (!idle.empty())
    return {comma_list(idle) + (idle.size() == 1 ? " has" : " have") +
            " no effect: this node trains alone. --nodes N and --listen HOST:PORT start a "
            "cluster."};
  std::vector<std::string> lines;
  for (const auto& rule : option_rules())
    if (rule.what == option_rule::kind::is_idle_without && holds(rule.one) && !holds(rule.other) &&
        (*rule.unless == '\0' || !holds(rule.unless)))
      lines.push_back(as_given(rule.one) + " has no effect: " + rule.why);
  return lines;
}

}  // namespace poseidon::app
