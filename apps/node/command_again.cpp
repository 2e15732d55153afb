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

}  // namespace

std::string command_again(const CLI::App& app, int argc, const char* const* argv) {
  auto command = app.get_name();
  const auto words = usual_words(app, argc, argv);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--weights" || words[i] == "--snapshot")
      ++i;  // its value, too
    else if (!words[i].starts_with("--weights=") && !words[i].starts_with("--snapshot="))
      command += " " + for_a_shell(words[i]);
  }
  return command;
}

}  // namespace poseidon::app
