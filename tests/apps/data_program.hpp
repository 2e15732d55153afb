// tests/apps/data_program.hpp - runs poseidon-data, as a user would, on files that a test has made.
#pragma once
#include "data/database.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <string>
#include <sys/wait.h>
#include <utility>
#include <vector>

namespace poseidon::test {

struct outcome {
  int code = -1;
  std::string text;  ///< standard output and standard error
};

/// poseidon-data with these words, `before` them something for the shell ("ulimit -f 8;").
inline outcome run_data(const std::string& words, const std::string& before = {}) {
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "poseidon-data";
  REQUIRE(std::filesystem::exists(program));
  const auto command = before + " " + program.string() + " 2>&1 " + words;
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  outcome result;
  char piece[256];
  while (std::fgets(piece, sizeof piece, pipe) != nullptr) result.text += piece;
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  return result;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
inline bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == text.size() - 1;
}

/// Ends with code 2 and one line that has `part` in it.
inline void check_refused(const std::string& words, const std::string& part) {
  const auto done = run_data(words);
  CHECK_MESSAGE(done.code == 2, words, "\n", done.text);
  CHECK_MESSAGE((is_one_line(done.text) && has(done.text, part)), done.text);
}
inline void check_done(const std::string& words, const std::string& part = {}) {
  const auto done = run_data(words);
  CHECK_MESSAGE(done.code == 0, words, "\n", done.text);
  CHECK_MESSAGE(has(done.text, part), done.text);
}

using records = std::vector<std::pair<std::string, std::string>>;  // keys and values

inline records records_of(const std::filesystem::path& database) {
  const auto reader = open_database(database);
  records all;
  std::vector<std::uint8_t> scratch;
  for (std::uint64_t n = 0; n < reader->size(); ++n) {
    const auto value = reader->value(n, scratch);
    all.emplace_back(reader->key(n), std::string(value.begin(), value.end()));
  }
  return all;
}

/// Names in a folder that some command should have taken away.
inline std::size_t leftovers(const std::filesystem::path& folder) {
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (has(entry.path().filename().string(), ".partial") ||
        has(entry.path().filename().string(), ".tmp"))
      ++found;
  return found;
}

}  // namespace poseidon::test
