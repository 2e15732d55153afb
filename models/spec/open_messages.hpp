// models/spec/open_messages.hpp - which braces are open at a place of a text in protobuf's text format.
#pragma once
#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

/// `field {` that is not closed yet.
struct open_message {
  std::string field;  ///< empty: the whole text
  char bracket = '{';
  int line = 0;                                        ///< of the bracket, from 1
  const google::protobuf::Descriptor* type = nullptr;  ///< null: the schema has no such message
};

/// As protobuf's tokenizer counts them, from 0; a tab goes on to the next multiple of 8.
struct text_place {
  int line = 0, column = 0;
};

/// Outermost first: the whole text of the type `root`, then each message that is open before `end`.
[[nodiscard]] std::vector<open_message> open_messages(std::string_view text, text_place end,
                                                      const google::protobuf::Descriptor& root);

/// Why `field`, which the innermost message of `open` does not have, may stand there: one around it has the field, so that a
/// closing brace is probably missing. Empty: none has it.
[[nodiscard]] std::string missing_brace(const std::vector<open_message>& open,
                                        const std::string& field);

/// `layer { of line 3`
[[nodiscard]] std::string opening_of(const open_message& m);

}  // namespace poseidon
