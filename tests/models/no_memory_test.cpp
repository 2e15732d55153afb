#include "models/no_memory.hpp"

#include "models/words.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace poseidon;

namespace {

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("no_memory: says how much was wanted for what, and the innermost use counts") {
  CHECK(says(no_memory(2'500'000).what(), "not enough memory: 2.5 MB were wanted."));
  const memory_for net("the blobs of net", "LeNet");
  {
    const memory_for layer("layer", "ip1");
    CHECK(says(no_memory(48).what(), "not enough memory for layer \"ip1\": 48 bytes were wanted."));
  }
  CHECK(says(no_memory(1'000'000).what(), "for the blobs of net \"LeNet\": 1.0 MB were wanted."));
}

TEST_CASE("no_memory: a name of any length leaves room for the rest of the sentence") {
  const std::string name(5000, 'x');
  const memory_for use(name, name);
  const std::string said = no_memory(1'843'200'000).what();
  CHECK(says(said, "1843.2 MB were wanted"));
  CHECK(says(said, "ulimit -v"));
}

TEST_CASE(
    "in_words: the standard library's word for missing memory becomes a sentence, behind the "
    "actor's name") {
  CHECK(in_words("checkpointer: std::bad_alloc") ==
        std::string("checkpointer: ") + no_memory(0).what());
  CHECK(says(in_words("Resource temporarily unavailable"), "a thread cannot be started"));
  CHECK(says(in_words("Resource temporarily unavailable"), "MB)"));
  CHECK(in_words("a label is 12") == "a label is 12");
}
