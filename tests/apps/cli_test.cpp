#include "apps/cli.hpp"

#include <doctest/doctest.h>

#include <regex>

using namespace poseidon;
using namespace poseidon::app;

namespace {

struct words_read {
  std::string solver, gpu = "none", out;
  bool shuffle = false;
  int height = 7;
};

void add_options(CLI::App& app, words_read& w) {
  app.add_option("--solver", w.solver, "a file");
  app.add_option("--gpu", w.gpu, "which");
  app.add_option("-o,--output", w.out, "where");
  app.add_option("--resize-height", w.height, "rows");
  app.add_flag("--shuffle", w.shuffle, "random order");
}

words_read read(std::vector<const char*> arguments) {
  words_read w;
  command_line app("A test.", "prog");
  add_options(app, w);
  arguments.insert(arguments.begin(), "prog");
  CHECK(parsed(app, static_cast<int>(arguments.size()), arguments.data()));
  return w;
}

std::string refusal(std::vector<const char*> arguments) {
  words_read w;
  command_line app("A test.", "prog");
  add_options(app, w);
  auto* verb = app.add_subcommand("mean", "a verb");
  std::string source;
  verb->add_option("--source", source, "a file")->required();
  app.require_subcommand(0, 1);
  app.fallthrough();
  arguments.insert(arguments.begin(), "prog");
  try {
    (void)parsed(app, static_cast<int>(arguments.size()), arguments.data());
  } catch (const spec_error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("cli: options are read as Caffe's programs accept them") {
  for (const auto& arguments :
       std::vector<std::vector<const char*>>{{"--solver", "a.prototxt", "--gpu", "0,1"},
                                             {"-solver", "a.prototxt", "-gpu", "0,1"},
                                             {"-solver=a.prototxt", "-gpu=0,1"},
                                             {"--solver=a.prototxt", "-gpu", "0,1"}}) {
    const auto w = read(arguments);
    CHECK(w.solver == "a.prototxt");
    CHECK(w.gpu == "0,1");
  }
  CHECK(read({"-resize_height", "5"}).height == 5);
  CHECK(read({"--resize_height=5"}).height == 5);
  CHECK(read({"-resize-height=-5"}).height == -5);
  CHECK(read({"--resize-height", "-5"}).height == -5);
  CHECK(read({"-shuffle"}).shuffle);
  CHECK(read({"--shuffle=true"}).shuffle);
  CHECK_FALSE(read({"--noshuffle"}).shuffle);
  CHECK_FALSE(read({"-shuffle=false"}).shuffle);
}

TEST_CASE("cli: short options and values stay what they are") {
  CHECK(read({"-o", "x"}).out == "x");
  CHECK(read({"-ox"}).out == "x");
  CHECK(read({"-o", "-"}).out == "-");
  CHECK(read({"--solver", "a_b=c"}).solver == "a_b=c");
}

TEST_CASE("cli: an unknown option is refused with the one that was meant") {
  CHECK(refusal({"--solvr", "x"}) ==
        "prog has no option --solvr. Did you mean \"--solver\"? prog --help lists the options.");
  CHECK(
      refusal({"-resize_hieght=5"}) ==
      "prog has no option -resize_hieght. Did you mean \"--resize-height\"? prog --help lists the "
      "options.");
  CHECK(refusal({"-x"}) == "prog has no option -x. prog --help lists the options.");
  // also where something else is missing
  CHECK(refusal({"mean", "--sorce", "x"}) ==
        "prog mean has no option --sorce. Did you mean \"--source\"? prog mean --help lists the "
        "options.");
  CHECK(refusal({"mean", "--shufle", "x"}).find("Did you mean \"--shuffle\"?") !=
        std::string::npos);
}

TEST_CASE("cli: unknown verbs, missing values and words too many are named") {
  CHECK(
      refusal({"maen"}) ==
      "prog maen: there is no such verb. There are mean. Did you mean \"mean\"? prog --help lists "
      "the options.");
  CHECK(refusal({"--solver"}) ==
        "--solver: a value has to follow it, and none does. prog --help lists the options.");
  CHECK(refusal({"--solver", "--gpu", "0"}).find("--solver: a value has to follow it") == 0);
  CHECK(refusal({"mean", "--source", "a", "b"}) ==
        "\"b\" belongs to no option. prog mean --help lists the options.");
}

TEST_CASE("cli: help shows defaults, and every program has a version") {
  words_read w;
  command_line app("A test.", "prog verb");
  add_options(app, w);
  std::string level = "info", place;
  int nodes = 1;
  app.add_option("--level", level, "how much")->check(CLI::IsMember({"quiet", "info"}));
  app.add_option("--nodes", nodes, "how many")->check(CLI::Range(1, 9));
  app.add_option("place,--place", place, "where")->required();
  const auto help = app.help();
  CHECK(std::regex_search(help, std::regex("--resize-height N +rows \\(default: 7\\)\n")));
  CHECK(std::regex_search(help,
                          std::regex("--level \\{quiet,info\\} +how much \\(default: info\\)\n")));
  CHECK(std::regex_search(help, std::regex("--nodes N +how many \\(1 to 9; default: 1\\)\n")));
  // once, and not as an option that is also required
  CHECK(std::regex_search(help,
                          std::regex("\n  place TEXT +where \\(also as --place; required\\)\n")));
  CHECK(help.find("--place TEXT") == std::string::npos);
  CHECK(app.help().find("--version") != std::string::npos);
  CHECK(app.version() == "prog " POSEIDON_VERSION);
}
