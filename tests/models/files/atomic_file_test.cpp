#include "models/files/atomic_file.hpp"

#include "tests/folder.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

using namespace poseidon;

namespace {

std::set<std::string> files_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

/// A process that writes `target` and is killed in the middle. Returns  its number.
pid_t killed_while_it_writes(const std::filesystem::path& target) {
  const auto child = ::fork();
  if (child == 0) {
    temporary_file file(target);
    (void)file.write("half of it");
    ::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  return child;
}

}  // namespace

TEST_CASE("remove_leftovers: takes what killed writers have left, and nothing else") {
  const test::temporary_folder folder;
  const auto killed = killed_while_it_writes(folder.path() / "s_iter_500.caffemodel");
  const auto leftover = ".s_iter_500.caffemodel." + std::to_string(killed) + ".0.tmp";
  temporary_file living(folder.path() / "s_iter_600.caffemodel");
  const std::set<std::string> others{".other_iter_5.caffemodel.1.0.tmp", ".s_iter_notes.tmp",
                                     ".s_iter_.1.tmp", "s_iter_400.caffemodel",
                                     living.path().filename().string()};
  for (const auto& name : others)
    if (name != living.path().filename()) folder.write(name, "text");
  auto all = others;
  all.insert(leftover);
  REQUIRE(files_in(folder.path()) == all);
  remove_leftovers(folder.path() / "s_iter_");
  CHECK(files_in(folder.path()) == others);

  SUBCASE("a file that is closed and not yet renamed is still in use") {
    REQUIRE(living.close() == 0);
    remove_leftovers(folder.path() / "s_iter_");
    CHECK(living.rename() == 0);
  }
}

TEST_CASE("link_durably: the second name keeps the file when the first one gets another") {
  const test::temporary_folder folder;
  const auto first = folder / "run_iter_2", second = folder / "run_best_iter_2";
  write_atomically(first, std::string_view("weights"));
  CHECK(link_durably(first, second) == 0);
  CHECK(std::filesystem::equivalent(first, second));
  CHECK(link_durably(first, second) == EEXIST);
  write_atomically(first, std::string_view("others"));
  std::ifstream kept(second);
  CHECK(std::string(std::istreambuf_iterator<char>(kept), {}) == "weights");
  CHECK(link_durably(folder / "nothing", folder / "third") == ENOENT);
}

TEST_CASE("write_atomically: removes what a killed writer of the same file has left") {
  const test::temporary_folder folder;
  (void)killed_while_it_writes(folder.path() / "trace.json");
  CHECK(files_in(folder.path()).size() == 1);
  write_atomically(folder.path() / "trace.json", std::string_view("whole"));
  CHECK(files_in(folder.path()) == std::set<std::string>{"trace.json"});
}
