#include "apps/library/run_handle.hpp"

#include "apps/library/words.hpp"
#include "models/words.hpp"

#include <algorithm>

namespace poseidon::library {

namespace {

thread_local std::string last_error;

}  // namespace

const char* error_of_this_thread() noexcept {
  return last_error.c_str();
}

seconds limit_of(double timeout_s) {
  return seconds(timeout_s > 0 ? std::min(timeout_s, 1e8) : 0);
}

void keep_error(const char* text) noexcept {
  try {
    last_error = in_program_words(in_words(text), option_names());
  } catch (...) {
    last_error = "out of memory";  // so short that it needs none
  }
}

}  // namespace poseidon::library
