// tests/main.cpp - doctest's main, which fails when a filter selected no test: a suite that ran
// nothing must not look like one that passed. Where all that it selected is skipped, because
// something is not on this machine, the exit code is 77, which ctest counts as skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <vector>

// libhdf5 keeps what it had made of a damaged file when it met the damage. It reuses blocks of its own, so the
// block that is lost may have been allocated by any test before: only its library can be named.
extern "C" const char* __lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libhdf5_serial\n";
}

// The references to an exception are counted inside Debian's libstdc++, which is not instrumented. So where one thread reads
// an exception and another one gives up the last reference, ThreadSanitizer sees no order between the two.
extern "C" const char* __tsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}

namespace {
int tests_run = 0;
int tests_selected = 0;  // skipped ones too; only a counting run says

struct run_counter : doctest::IReporter {
  explicit run_counter(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData& q) override {
    tests_selected = static_cast<int>(q.run_stats->numTestCasesPassingFilters);
  }
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& s) override {
    tests_run = static_cast<int>(s.numTestCasesPassingFilters);
  }
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
}  // namespace

REGISTER_LISTENER("run_counter", 1, run_counter);

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int result = context.run();
  if (context.shouldExit()) return result;
  if (tests_run == 0) {
    std::vector<const char*> arguments(argv, argv + argc);
    arguments.insert(arguments.end(), {"--count", "--no-skip"});
    doctest::Context counting(static_cast<int>(arguments.size()), arguments.data());
    counting.run();
    if (tests_selected > 0) {
      std::fputs("skipped: what these tests need is not on this machine\n", stderr);
      return 77;
    }
    std::fputs("no test matched: a suite that ran nothing fails\n", stderr);
    return 1;
  }
  return result;
}
