// apps/library/own_process.hpp - whether this is the process that has joined, or the child of a fork, which has none of its threads.
#pragma once
#include <atomic>
#include <mutex>
#include <pthread.h>
#include <unistd.h>

namespace poseidon::library {

/// Every function of the interface asks, so the answer costs no system call.
class own_process {
 public:
  /// From now on forks by fork() are counted.
  own_process() : forks_(counted()) {}
  [[nodiscard]] bool is_here() const { return forks_ == count().load(std::memory_order_relaxed); }
  [[nodiscard]] int number() const { return number_; }

 private:
  /// How many forks lie between the first process that has joined and this one. Each is counted in the child alone.
  static std::atomic<unsigned>& count() {
    static std::atomic<unsigned> forks{0};
    return forks;
  }
  static unsigned counted() {
    static std::once_flag once;
    std::call_once(once, [] { ::pthread_atfork(nullptr, nullptr, [] { ++count(); }); });
    return count();
  }

  unsigned forks_;
  int number_ = ::getpid();
};

}  // namespace poseidon::library
