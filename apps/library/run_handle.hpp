// apps/library/run_handle.hpp - what all functions of poseidon.h share: the handle, and how an exception becomes an answer.
#pragma once
#include "apps/library/session.hpp"

#include <exception>
#include <string>
#include <utility>

/// The opaque type of the C interface.
struct poseidon_run {
  explicit poseidon_run(poseidon::library::options told) : run(std::move(told)) {}
  poseidon::library::session run;
  std::string line;  ///< that poseidon_next_line has answered last
};

namespace poseidon::library {

/// What poseidon_error answers in this thread.
const char* error_of_this_thread() noexcept;

/// What a program says it would wait. Years would overflow the clock, and what is no number waits for nothing.
seconds limit_of(double timeout_s);

/// Keeps it, in a program's words.
void keep_error(const char* text) noexcept;

/// Runs a part of the interface: no exception leaves the library. False: it has failed, and poseidon_error says why.
template <class F>
bool guarded(F f) {
  try {
    f();
    return true;
  } catch (const std::exception& e) {
    keep_error(e.what());
  } catch (...) {
    keep_error("an unknown exception inside the library");
  }
  return false;
}

/// A function that answers with a number.
template <class F>
[[nodiscard]] int called(poseidon_run* p, F f) {
  int answer = -1;
  const bool done = guarded([&] {
    if (p == nullptr) throw session_error("the handle is null");
    answer = f(p->run);
  });
  return done ? answer : -1;
}

}  // namespace poseidon::library
