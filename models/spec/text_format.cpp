#include "models/spec/text_format.hpp"

#include "models/caffe.hpp"
#include "models/first_bytes.hpp"
#include "models/spec/open_messages.hpp"
#include "models/words.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

namespace poseidon {

namespace pb = google::protobuf;

namespace {

/// Keeps the first mistake: what follows is usually its consequence.
class first_error : public pb::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text_) text_ = message, place_ = {line, column};
  }
  [[nodiscard]] text_place place() const { return place_; }
  [[nodiscard]] std::string text() const { return text_.value_or("not a specification"); }

 private:
  std::optional<std::string> text_;
  text_place place_;
};

std::vector<std::string> field_names(const std::string& message_type) {
  std::vector<std::string> names;
  const auto* type =
      caffe::NetParameter::descriptor()->file()->pool()->FindMessageTypeByName(message_type);
  for (int i = 0; type != nullptr && i < type->field_count(); ++i)
    names.push_back(type->field(i)->name());
  return names;
}

void add_enum_words(const pb::Descriptor& type, const std::string& field,
                    std::vector<std::string>& words) {
  const auto* f = type.FindFieldByName(field);
  if (f == nullptr || f->enum_type() == nullptr) return;
  for (int i = 0; i < f->enum_type()->value_count(); ++i) {
    const auto& word = f->enum_type()->value(i)->name();
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
}

/// The parser does not report the message that it was in, so these are the words of every field of
/// that name.
std::vector<std::string> enum_words(const std::string& field) {
  std::vector<std::string> words;
  const auto* file = caffe::NetParameter::descriptor()->file();
  for (int i = 0; i < file->message_type_count(); ++i)
    add_enum_words(*file->message_type(i), field, words);
  return words;
}

std::string bare(const std::string& message_type) {
  return message_type.substr(message_type.rfind('.') + 1);
}

/// The texts between `pieces`, where `message` has them all in this order.
std::optional<std::vector<std::string>> between(const std::string& message,
                                                const std::vector<std::string>& pieces) {
  std::vector<std::string> found;
  auto at = message.find(pieces.front());
  for (std::size_t i = 1; i < pieces.size() && at != std::string::npos; ++i) {
    const auto begin = at + pieces[i - 1].size();
    at = message.find(pieces[i], begin);
    if (at != std::string::npos) found.push_back(message.substr(begin, at - begin));
  }
  if (at == std::string::npos) return std::nullopt;
  return found;
}

/// The parser's message in our words, with what to write instead. `open`: at the place of the mistake.
std::string explained(const std::string& message, const std::vector<open_message>& open) {
  if (const auto m = between(message, {"Message type \"", "\" has no field named \"", "\"."})) {
    const auto &type = m->at(0), &field = m->at(1);
    if (bare(type) == "V1LayerParameter" && field == "layer")
      return "this is a V0 net (layers { layer { ... } }, 2013), which is not read. Convert it "
             "with Caffe's "
             "upgrade_net_proto_text.";
    auto hint = missing_brace(open, field);
    if (hint.empty()) hint = did_you_mean(field, field_names(type));
    return bare(type) + " has no field \"" + field + "\"." + hint;
  }
  if (const auto m =
          between(message, {"Unknown enumeration value of \"", "\" for field \"", "\"."})) {
    const auto words = enum_words(m->at(1));
    auto hint = did_you_mean(m->at(0), words);
    if (hint.empty() && words.size() <= 8) hint = " It can be " + comma_list(words) + ".";
    return "\"" + m->at(0) + "\" is no value of the field \"" + m->at(1) + "\"." + hint;
  }
  if (const auto m = between(message, {"Non-repeated field \"", "\" is specified multiple times."}))
    return "the field \"" + m->at(0) +
           "\" stands here a second time and can have one value only. Delete one of the two.";
  const std::string no_string = "Expected string, got: ";
  if (message.rfind(no_string, 0) == 0 && message.size() > no_string.size() &&
      message[no_string.size()] >= 'A' && message[no_string.size()] <= 'Z')
    return message +
           ". A layer { } takes its type in quotes, as in type: \"Convolution\"; capital words "
           "without quotes belong to the older layers { }.";
  if (message.rfind("Expected identifier, got: ", 0) == 0 && message.back() == ' ')
    return "the file ends inside " + (open.size() > 1 ? opening_of(open.back()) : "a { }") +
           ". A closing brace is missing.";
  if (message == "Expected identifier, got: }" && open.size() == 1)
    return "this } closes nothing: there is one too many, here or above.";
  return message;
}

}  // namespace

namespace {
constexpr std::size_t most_bytes = std::size_t{16} << 20;  // some 25 times as much memory is needed
}

std::string read_spec_text(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw spec_error({path.string(), 0},
                     "this is a folder, not a specification. Name the file in it.");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    const std::string reason = errno == ENOENT ? "there is no such file" : std::strerror(errno);
    throw spec_error({path.string(), 0}, reason + ". Relative paths start at " +
                                             std::filesystem::current_path(ignored).string() + ".");
  }
  // Also of a pipe or a device, which have no size.
  std::string text;
  char piece[1 << 16];
  while (text.size() <= most_bytes && (in.read(piece, sizeof piece), in.gcount() > 0))
    text.append(piece, static_cast<std::size_t>(in.gcount()));
  if (in.bad())
    throw spec_error({path.string(), 0}, "it cannot be read: " + std::string(std::strerror(errno)) +
                                             ". Is it a specification?");
  if (text.size() > most_bytes)
    throw spec_error({path.string(), 0},
                     "it has more than " + std::to_string(most_bytes >> 20) +
                         " MiB, the most that is read of a specification. Is it one?");
  if (const auto pointer = lfs_pointer(text); !pointer.empty())
    throw spec_error({path.string(), 0}, "this is " + pointer + ".");
  if (is_utf16(text))
    throw spec_error({path.string(), 0},
                     "this is text in UTF-16, and a specification is in ASCII or UTF-8. Save it in "
                     "one of these.");
  return std::string(without_byte_order_mark(text));
}

void parse_text(std::string_view text, const std::string& file_name, pb::Message& message,
                field_lines& lines) {
  first_error errors;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&lines);
  parser.SetRecursionLimit(100);
  text = without_byte_order_mark(text);
  pb::io::ArrayInputStream in(text.data(), static_cast<int>(text.size()));
  if (parser.Parse(&in, &message)) return;
  const auto open = open_messages(text, errors.place(), *message.GetDescriptor());
  const auto line = errors.place().line + 1;
  throw spec_error({file_name, line}, explained(errors.text(), open));
}

int line_of(const field_lines& lines, const pb::Message& message, const char* field, int index) {
  const auto* f = message.GetDescriptor()->FindFieldByName(field);
  if (f == nullptr) return 0;
  const auto& reflection = *message.GetReflection();
  if (!f->is_repeated())
    return reflection.HasField(message, f) ? lines.GetLocation(f, -1).line + 1 : 0;
  const bool there = index >= 0 && index < reflection.FieldSize(message, f);
  return there ? lines.GetLocation(f, index).line + 1 : 0;
}

}  // namespace poseidon
