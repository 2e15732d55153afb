// models/spec/text_format.hpp - reads protobuf's text format; errors name the place and the mistake.
#pragma once
#include "models/spec/spec_file.hpp"

#include <google/protobuf/text_format.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace poseidon {

using field_lines = google::protobuf::TextFormat::ParseInfoTree;

/// The whole of a specification file.   Errors   spec_error: missing, a folder, not readable.
[[nodiscard]] std::string read_spec_text(const std::filesystem::path& path);

/// Fills `message` from `text`; `lines` then knows where each field stands.
///
/// Errors   spec_error "file:line: ..." for the first mistake; an unknown field or enum word is
///          answered with the nearest that its message knows.
void parse_text(std::string_view text, const std::string& file_name,
                google::protobuf::Message& message, field_lines& lines);

/// Line, from 1, of entry `index` of a field (-1: not repeated); 0 if the field is missing.
[[nodiscard]] int line_of(const field_lines& lines, const google::protobuf::Message& message,
                          const char* field, int index);

}  // namespace poseidon
