// poseidon-oracle - runs every case of folders with reference results of BVLC Caffe and compares.
//
//   poseidon-oracle DIR... [--only PREFIX]
//
// One line per failing case, the skipped ones counted by layer type, and at the end, alone on a
// line, "N passed, N failed, N skipped". Exit code 0 if none failed, 1 if one did, 2 for wrong use.
#include "apps/oracle/cases.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using poseidon::oracle::outcome;
using poseidon::oracle::result;

struct options {
  std::vector<fs::path> folders;
  std::string only;
};

struct tally {
  std::size_t passed = 0, failed = 0, skipped = 0;
  std::map<std::string, std::size_t> skipped_types;

  void add(const result& r) {
    switch (r.what) {
      case outcome::passed:
        ++passed;
        break;
      case outcome::skipped:
        ++skipped, ++skipped_types[r.detail];
        break;
      case outcome::failed:
        ++failed;
        std::cout << "FAILED " << r.name << ": " << r.detail << "\n";
        break;
    }
  }
};

/// Returns  false for wrong use, after saying so.
bool read_options(int argc, char** argv, options& to) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--only") {
      if (++i == argc)
        return std::cerr << "--only needs the beginning of case names, as in layers/conv\n", false;
      to.only = argv[i];
    } else if (word.rfind("--", 0) == 0) {
      return std::cerr << "unknown option " << word
                       << "\nusage: poseidon-oracle DIR... [--only PREFIX]\n",
             false;
    } else {
      to.folders.emplace_back(word);
    }
  }
  if (to.folders.empty())
    return std::cerr << "usage: poseidon-oracle DIR... [--only PREFIX]\n", false;
  for (const auto& folder : to.folders)
    if (!fs::exists(folder / "MANIFEST.json"))
      return std::cerr << folder.string() << ": there is no MANIFEST.json in it\n", false;
  return true;
}

bool is_wanted(const options& o, const std::string& name) {
  return name.rfind(o.only, 0) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  options o;
  if (!read_options(argc, argv, o)) return 2;
  using runner = std::vector<result> (*)(const fs::path&);
  // A part is run if the prefix may name cases of it.
  const std::vector<std::pair<std::string, runner>> parts{
      {"layers/", poseidon::oracle::run_layer_cases},
      {"datalayers/", poseidon::oracle::run_data_cases},
      {"solvers/", poseidon::oracle::run_solver_cases},
      {"formats/", poseidon::oracle::run_format_cases},
      {"formats/errors/", poseidon::oracle::run_error_cases}};
  tally sum;
  for (const auto& folder : o.folders)
    for (const auto& [part, run] : parts) {
      if (!is_wanted(o, part) && o.only.rfind(part, 0) != 0) continue;
      // Cases are run from their own folder; the next one starts here again.
      const auto here = fs::current_path();
      const auto results = run(fs::absolute(folder));
      fs::current_path(here);
      for (const auto& r : results)
        if (is_wanted(o, r.name)) sum.add(r);
    }
  for (const auto& [type, count] : sum.skipped_types)
    std::cout << "skipped " << type << ": " << count << "\n";
  std::cout << sum.passed << " passed, " << sum.failed << " failed, " << sum.skipped << " skipped"
            << std::endl;
  return sum.failed == 0 ? 0 : 1;
}
