// Each story of transcripts/*.txt is what the product does. POSEIDON_WRITE_TRANSCRIPTS=1 writes the answers anew, to be read before they
// are committed.
#include "tests/actors/membership/transcript.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

namespace fs = std::filesystem;
using namespace poseidon;

namespace {

const fs::path folder = "tests/actors/membership/transcripts";

std::string text_in(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("transcripts: every story ends as it is written") {
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.insert(entry.path());
  REQUIRE(files.size() >= 20);
  for (const auto& file : files) {
    CAPTURE(file.filename().string());
    const auto written = text_in(file);
    const auto now = transcript::played(written);
    if (std::getenv("POSEIDON_WRITE_TRANSCRIPTS") != nullptr) {
      std::ofstream(file) << now;
    } else {
      CHECK(now == written);
    }
    CHECK(written.starts_with("# "));  // what the story is about
  }
}

TEST_CASE("transcripts: an event that there is not is an error, with its line") {
  const std::string words = "# none\n> 0 leads a run of 2\n> 0 dances\n";
  CHECK_THROWS_WITH_AS((void)transcript::played(words),
                       "\"> 0 dances\": the plan knows no such event", std::invalid_argument);
}

TEST_CASE("transcripts: an answer that is not the product's is seen") {
  const std::string words = "# one\n> 0 leads a run of 1\n> 0 is ready for view 1\n";
  const auto all = transcript::played(words + "  nothing happens\n");
  CHECK(all == words + "  all are told to train\n");
}
