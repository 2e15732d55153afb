#include "apps/node/command_again.hpp"

#include "apps/cli.hpp"

#include <algorithm>
#include <cctype>

namespace poseidon::app {

namespace {

bool is_plain(unsigned char c) {
  return std::isalnum(c) != 0 ||
         std::string("_@%+=:,./-").find(static_cast<char>(c)) != std::string::npos;
}

std::string for_a_shell(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// Whether a word, "--weights" or "--weights=FILE", names a file that a run begins with, by any of its names.
bool is_beginning(const CLI::App& app, const std::string& word) {
  const auto name = word.substr(0, word.find('='));
  return name.starts_with("--") && (app.get_option("--weights")->check_name(name) ||
                                    app.get_option("--snapshot")->check_name(name));
}

}  // namespace

std::string command_again(const CLI::App& app, int argc, const char* const* argv) {
  auto command = app.get_name();
  const auto words = usual_words(app, argc, argv);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_beginning(app, words[i]))
      command += " " + for_a_shell(words[i]);
    else if (words[i].find('=') == std::string::npos)
      ++i;  // its value is the next word
  }
  return command;
}

}  // namespace poseidon::app
