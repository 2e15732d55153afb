// models/words.hpp - suggestions for misspelt words, and small pieces of text.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

/// Edits that turn a into b: insert, delete, replace, or swap two neighbours; case does not count.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The nearest of `known`, if it is near enough to be a typing error: at most two edits, or a
/// third of the longer word where that is more. Ties go to the earlier.
[[nodiscard]] std::optional<std::string> nearest_word(std::string_view word,
                                                      const std::vector<std::string>& known);

/// ` Did you mean "conv1"?`, or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       const std::vector<std::string>& known);

/// "SGD, Nesterov, Adam"
[[nodiscard]] std::string comma_list(const std::vector<std::string>& words);

/// The shortest text that reads back as the same float: "0.1", "1e-05".
[[nodiscard]] std::string plain_number(float value);

/// "1 bottom", "2 bottoms"
[[nodiscard]] std::string plural(std::size_t n, const std::string& noun);

/// "1.5 kB", "2.0 MB": powers of 1000, as for the rates of networks.
[[nodiscard]] std::string megabytes(std::uint64_t bytes);

[[nodiscard]] std::string seconds_text(std::chrono::steady_clock::duration d);  ///< "2.5 s"

/// The standard library's words for missing memory and missing threads as sentences; other texts stay as they are.
[[nodiscard]] std::string in_words(std::string error);

}  // namespace poseidon
