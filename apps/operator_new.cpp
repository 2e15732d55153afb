// apps/operator_new.cpp - a program's operator new: as the standard library's, but a failure says how much was wanted.
//
// Only programs have it: libposeidon.so lives in processes of others, whose operator new it leaves alone. Sanitizers bring
// their own.
#include "models/no_memory.hpp"

#include <cstdlib>
#include <new>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

/// `allocate`: returns null where there is no memory.
template <class Allocate>
void* allocated(std::size_t bytes, Allocate allocate) {
  for (;;) {
    if (void* p = allocate()) return p;
    const auto handler = std::get_new_handler();
    if (handler == nullptr) throw poseidon::no_memory(bytes);
    handler();
  }
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocated(bytes, [=] { return std::malloc(bytes == 0 ? 1 : bytes); });
}

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto a = static_cast<std::size_t>(alignment);
  return allocated(bytes, [=] { return std::aligned_alloc(a, (bytes + a - 1) / a * a); });
}

// Those for arrays, and those that return null, call these.
void operator delete(void* p) noexcept {
  std::free(p);
}

void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}

void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}

#endif
