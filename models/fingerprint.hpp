// models/fingerprint.hpp
//
// By what the bits of a node's results may differ from those of another node that computes the same: the instructions that its
// kernels are chosen by, the versions of its libraries, the values that its C library's functions give. Nodes tell each other
// (messages/wire/link_identity.hpp), and compare (actors/run/kinds.hpp).
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

/// One property. Two nodes differ in it where its values do.
struct trait {
  std::string name;   ///< "oneDNN"; one of trait_names, or a program's own
  std::string value;  ///< "2.6.3"
  /// For people, in place of a value that means nothing to them; empty: the value.
  std::string shown = {};

  friend bool operator==(const trait&, const trait&) = default;
};

using fingerprint = std::vector<trait>;

/// Names that the comparison explains (actors/run/kinds.cpp).
namespace trait_names {
/// What a processor multiplies; value: one of product_names
inline constexpr std::string_view products = "products";
/// value: as ONEDNN_MAX_CPU_ISA has it
inline constexpr std::string_view instructions = "instructions";
inline constexpr std::string_view caches = "caches";
inline constexpr std::string_view processor = "processor";
inline constexpr std::string_view onednn = "oneDNN";
/// value: "expf:1f03ab22,logf:90cc0d71"
inline constexpr std::string_view c_library = "C library";
/// Where it differs, the rest need not be compared.
inline constexpr std::string_view device = "device";
inline constexpr std::string_view release = "Poseidon";
/// Of a device whose sums have another order in every run, so that no two runs of it have the same bits. value: why.
inline constexpr std::string_view varies = "varies";
}  // namespace trait_names

namespace product_names {
inline constexpr std::string_view fp32 = "float32";
inline constexpr std::string_view bf16 = "bfloat16";
}  // namespace product_names

inline constexpr std::size_t max_fingerprint_bytes = 1022;

/// As one text: "name\tvalue\tshown" a line. One that is longer than max_fingerprint_bytes becomes one trait, with a checksum of all.
[[nodiscard]] std::string encode(const fingerprint& of);
/// From any text: what is missing in a line is empty, and bytes that cannot be printed become '?'.
[[nodiscard]] fingerprint decode_fingerprint(std::string_view text);

}  // namespace poseidon
