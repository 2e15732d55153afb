// messages/declared.hpp - what worker 0's program has, as its view tells it to the others: parameters, and what is shared beside them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace poseidon::frames {

/// Of bytes (messages/wire/digest.hpp). Equal ones: two workers have the same.
struct byte_digest {
  std::uint64_t high = 0, low = 0;

  friend bool operator==(const byte_digest&, const byte_digest&) = default;
};

/// A parameter of a program that computes its gradients itself (actors/client).
struct declared_parameter {
  std::string name;
  std::vector<std::int64_t> dims;  ///< empty: one value
  bool given = false;              ///< a version is what worker 0 has pushed, as it is; no mean
  byte_digest first = {};          ///< of worker 0's first values
  bool bundle = false;  ///< its values have nothing in common: it never travels in blocks

  friend bool operator==(const declared_parameter&, const declared_parameter&) = default;
};

/// What a program has beside its parameters, and what is to be the same on all workers when the run begins.
struct shared_entry {
  std::string name, kind;  ///< kind: in the program's words
  std::uint64_t size = 0;  ///< bytes
  byte_digest digest;      ///< of worker 0's

  friend bool operator==(const shared_entry&, const shared_entry&) = default;
};

}  // namespace poseidon::frames
