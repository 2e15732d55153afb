// apps/library/words.hpp - what a node says, in the words of the program around it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace poseidon::library {

/// One line that a terminal may show: control characters and bytes that are no UTF-8 become "?", ends of lines blanks.
[[nodiscard]] std::string one_line(std::string_view text);

/// A node's text names options as poseidon-node's user types them; the program's user types none of these. "--token-file FILE" becomes
/// "token-file=FILE", for each of `options`, and the text one_line(). What a text advises the user of a poseidon-node to type stays.
[[nodiscard]] std::string in_program_words(std::string_view text,
                                           const std::vector<std::string>& options);

/// Which byte makes a text one that no message and no page can show: the place of the first control character, or of the first byte that
/// is no UTF-8; npos: none.
[[nodiscard]] std::size_t first_unfit(std::string_view name);

}  // namespace poseidon::library
