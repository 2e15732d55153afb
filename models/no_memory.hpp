// models/no_memory.hpp - what is said when an allocation fails: how much was wanted, and for what.
//
// Whoever allocates much names it by a memory_for; whoever allocates throws no_memory. That are the buffers of cpu/ and, in
// programs, operator new itself (apps/operator_new.cpp), so that every vector says its size.
#pragma once
#include <cstddef>
#include <new>
#include <string_view>

namespace poseidon {

/// As long as it lives, what this thread allocates is for `what`, of the name `name`: "the layer", "ip1". Of several the
/// innermost counts. Keeps views, so that nothing is allocated for a failure that seldom comes: both texts have to live as long.
class memory_for {
 public:
  explicit memory_for(std::string_view what, std::string_view name = {}) noexcept;
  ~memory_for();
  memory_for(const memory_for&) = delete;
  memory_for& operator=(const memory_for&) = delete;

 private:
  friend class no_memory;
  std::string_view what_, name_;
  const memory_for* outer_;
};

/// There is no memory for what this thread's memory_for names.
class no_memory : public std::bad_alloc {
 public:
  /// `bytes`: wanted in one piece; 0: a library wanted memory and does not say how much.
  explicit no_memory(std::size_t bytes) noexcept;
  [[nodiscard]] const char* what() const noexcept override { return text_; }

 private:
  char text_[400];
};

}  // namespace poseidon
