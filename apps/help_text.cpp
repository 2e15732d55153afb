#include "apps/help_text.hpp"

#include <algorithm>
#include <vector>

namespace poseidon::app {

namespace {

constexpr std::size_t width_of_names = 30;

/// CLI11 puts what an option's check says behind a colon; HOST:PORT has one of its own.
std::size_t end_of_kind(const std::string& type) {
  const std::string address = "HOST:PORT";
  const auto begin = type.starts_with(address) ? address.size() : 0;
  return std::min(type.find(':', begin), type.size());
}

/// Of a list without entries CLI11 2.1 says "[]", and 2.4 "{}".
bool says_something(const std::string& default_value) {
  return !default_value.empty() && default_value != "[]" && default_value != "{}";
}

/// One entry of a list. A long name has a line to itself.
std::string entry(const std::string& name, const std::string& text) {
  auto out = "  " + name;
  if (out.size() >= width_of_names)
    out += "\n" + std::string(width_of_names, ' ');
  else
    out.resize(width_of_names, ' ');
  return out + text + "\n";
}

std::string section(const std::string& heading, const std::string& entries) {
  return entries.empty() ? "" : "\n" + heading + ":\n" + entries;
}

/// CLI11 names the group of options without one in its own way.
std::string heading_of_group(const std::string& group) {
  return group == "OPTIONS" ? "Options" : group;
}

std::vector<const CLI::App*> listed_verbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

std::string usage(const CLI::App& app, const std::string& name) {
  std::string out = "Usage: " + name + " [OPTIONS]";
  for (const auto* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const auto word = option->get_name(true, false) + (option->get_expected_max() > 1 ? "..." : "");
    out += option->get_required() ? " " + word : " [" + word + "]";
  }
  if (!listed_verbs(app).empty())
    out += app.get_require_subcommand_min() > 0 ? " SUBCOMMAND" : " [SUBCOMMAND]";
  return out + "\n";
}

}  // namespace

bool is_flag(const CLI::Option& option) {
  return option.get_expected_max() == 0;
}

std::string help_text::make_option_opts(const CLI::Option* option) const {
  if (is_flag(*option)) return "";
  const auto type = option->get_type_name();
  const auto kind = type.substr(0, end_of_kind(type));
  std::string text = kind == "UINT" || kind == "INT" ? " N" : kind == "FLOAT" ? " X" : " " + kind;
  if (type.find('{') != std::string::npos) text = " " + type.substr(type.find('{'));
  return option->get_expected_min() == 0 ? " [" + text.substr(1) + "]" : text;
}

std::string help_text::make_option_desc(const CLI::Option* option) const {
  std::vector<std::string> facts;
  if (option->get_positional() && !option->get_lnames().empty())
    facts.push_back("also as --" + option->get_lnames().front());
  const auto type = option->get_type_name();
  if (const auto range = type.find(" in ["); range != std::string::npos) {
    const auto middle = type.find(" - ", range), end = type.find(']', range);
    facts.push_back(type.substr(range + 5, middle - range - 5) + " to " +
                    type.substr(middle + 3, end - middle - 3));
  }
  if (!is_flag(*option) && !option->get_required() && says_something(option->get_default_str()))
    facts.push_back("default: " + option->get_default_str());
  if (option->get_required()) facts.emplace_back("required");
  std::string text = option->get_description();
  for (std::size_t f = 0; f < facts.size(); ++f) text += (f == 0 ? " (" : "; ") + facts[f];
  return text + (facts.empty() ? "" : ")");
}

std::string help_text::make_help(const CLI::App* app, std::string name,
                                 CLI::AppFormatMode /*mode*/) const {
  std::string positionals, verbs, out = app->get_description() + "\n" + usage(*app, name);
  const auto entry_of = [this](const CLI::Option* option, const std::string& names) {
    return entry(names + make_option_opts(option), make_option_desc(option));
  };
  for (const auto* option : app->get_options())
    if (option->get_positional()) positionals += entry_of(option, option->get_name(true, false));
  out += section("Positionals", positionals);
  for (const auto& group : app->get_groups()) {
    std::string options;
    for (const auto* option : app->get_options())
      if (!option->get_positional() && option->get_group() == group && !group.empty())
        options += entry_of(option, option->get_name(false, true));
    out += section(heading_of_group(group), options);
  }
  for (const auto* verb : listed_verbs(*app))
    verbs += entry(verb->get_name(), verb->get_description());
  out += section("Subcommands", verbs);
  return out + (app->get_footer().empty() ? "" : "\n" + app->get_footer() + "\n");
}

}  // namespace poseidon::app
