#include "models/spec/open_messages.hpp"

#include <cctype>

namespace poseidon {

namespace pb = google::protobuf;

namespace {

class text_scan {
 public:
  text_scan(std::string_view text, text_place end, const pb::Descriptor& root)
      : text_(text), end_(end) {
    open_.push_back({"", '{', 1, &root});
  }

  std::vector<open_message> run() {
    while (before_end()) {
      const char c = text_[at_];
      if (c == '#')
        skip_comment();
      else if (c == '"' || c == '\'')
        skip_quoted();
      else if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_')
        take_word();
      else
        take_sign(c);
    }
    return std::move(open_);
  }

 private:
  bool before_end() const {
    if (at_ >= text_.size()) return false;
    return here_.line < end_.line || (here_.line == end_.line && here_.column < end_.column);
  }
  void next() {
    constexpr int tab = 8;
    const char c = text_[at_++];
    if (c == '\n')
      ++here_.line, here_.column = 0;
    else
      here_.column += c == '\t' ? tab - here_.column % tab : 1;
  }
  void skip_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') next();
  }
  void skip_quoted() {
    const char quote = text_[at_];
    for (next(); at_ < text_.size() && text_[at_] != '\n'; next()) {
      if (text_[at_] == quote) return next();
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) next();
    }
  }
  void take_word() {
    word_.clear();
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      word_ += text_[at_];
      next();
    }
  }
  void take_sign(char c) {
    if (c == '{' || c == '<') {
      const auto* around = open_.back().type;
      const auto* field = around != nullptr ? around->FindFieldByName(word_) : nullptr;
      open_.push_back(
          {word_, c, here_.line + 1, field != nullptr ? field->message_type() : nullptr});
    } else if ((c == '}' || c == '>') && open_.size() > 1) {
      word_ = open_.back().field;  // of a list, the next entry is of the same field
      open_.pop_back();
    }
    next();
  }

  std::string_view text_;
  text_place end_, here_;
  std::size_t at_ = 0;
  std::string word_;
  std::vector<open_message> open_;
};

}  // namespace

std::vector<open_message> open_messages(std::string_view text, text_place end,
                                        const pb::Descriptor& root) {
  return text_scan(text, end, root).run();
}

std::string opening_of(const open_message& m) {
  return m.field + " " + m.bracket + " of line " + std::to_string(m.line);
}

std::string missing_brace(const std::vector<open_message>& open, const std::string& field) {
  for (auto around = open.size() - 1; around-- > 0;) {
    const auto* type = open[around].type;
    if (type == nullptr || type->FindFieldByName(field) == nullptr) continue;
    std::string which;
    for (auto inner = open.size() - 1; inner > around; --inner)
      which += (which.empty() ? "" : " and of ") + opening_of(open[inner]);
    return " " + type->name() + " has one: is the closing brace of " + which + " missing?";
  }
  return "";
}

}  // namespace poseidon
