// messages/wire/decode.cpp - Cap'n Proto to frames, by frame_fields.hpp: every size is compared before anything is copied.
#include "messages/frame_table.hpp"
#include "messages/wire/at_most.hpp"
#include "messages/wire/frame_fields.hpp"

#include <capnp/dynamic.h>
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "wire.capnp.h"

namespace poseidon {
namespace {

// -- rules of one field --------------------------------------------------------------------------------------

void hold(std::string_view kind, const within& rule, std::uint64_t got) {
  at_most(kind, rule.label, got, rule.most);
  if (got < rule.least)
    throw bad_frame(kind, rule.label, std::to_string(got), std::to_string(rule.least) + " or more");
}

void hold(std::string_view kind, const between& rule, std::int64_t got) {
  if (got < rule.least || got > rule.most)
    throw bad_frame(kind, rule.label, std::to_string(got),
                    std::to_string(rule.least) + " to " + std::to_string(rule.most));
}

void hold(std::string_view kind, const rate_of& rule, double got) {
  if (!std::isfinite(got) || got < 0 || (got == 0 && !rule.may_be_zero))
    throw bad_frame(kind, rule.label, std::to_string(got),
                    rule.may_be_zero ? "0 or more" : "a positive number");
}

void hold(std::string_view kind, const many& rule, std::size_t got) {
  hold(kind, within{rule.label, rule.least, rule.most}, got);
}

void hold(std::string_view kind, const one_each& rule, std::size_t got) {
  if (got != 0 && got != rule.members)
    throw bad_frame(kind, "number of shares", std::to_string(got),
                    "0, or that of the members, " + std::to_string(rule.members));
}

// -- rules of what has been read -----------------------------------------------------------------------------

/// The order of members is that of their seats.
void hold_order(std::string_view kind, seat_id before, seat_id seat) {
  if (seat <= before)
    throw bad_frame(kind, "seat", std::to_string(value(seat)),
                    "more than that of the member before, " + std::to_string(value(before)));
}

bool has(const std::vector<frames::member>& nodes, seat_id seat) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const auto& n) { return n.seat == seat; });
}

template <class View>
void hold_witnesses(std::string_view kind, const View& v) {
  for (const auto& w : v.witnesses)
    if (has(v.members, w.seat))
      throw bad_frame(kind, "seat of a witness", std::to_string(value(w.seat)),
                      "one that no member has");
}

template <class F>
void hold_whole(std::string_view, const F&) {}

void hold_whole(std::string_view kind, const frames::next_view& v) {
  hold_witnesses(kind, v);
}

void hold_whole(std::string_view kind, const frames::view& v) {
  hold_witnesses(kind, v);
  const bool is_member = has(v.members, v.you) || has(v.witnesses, v.you);
  if (is_member == v.prospect || v.you == no_seat)
    throw bad_frame(kind, "you", std::to_string(value(v.you)),
                    v.prospect ? "a seat that no member has" : "the seat of a member");
}

void hold_whole(std::string_view kind, const frames::member& m) {
  if (m.seat == no_seat) throw bad_frame(kind, "seat", std::to_string(value(m.seat)), "a member's");
}

void hold_whole(std::string_view kind, const frames::share& s) {
  if (s.samples < s.replicas)
    throw bad_frame(kind, "samples of a share", std::to_string(s.samples),
                    "one for each of its " + std::to_string(s.replicas) + " replicas, at least");
}

void hold_whole(std::string_view kind, const frames::declared_parameter& p) {
  at_most(kind, "dims of parameter \"" + p.name + "\"", p.dims.size(), max_dims);
  std::uint64_t values = 1;
  for (const auto d : p.dims) {
    values *= static_cast<std::uint64_t>(d);
    if (values == 0 || values > max_parameter_values)
      throw bad_frame(kind, "size of parameter \"" + p.name + "\"", std::to_string(values),
                      "1 to " + std::to_string(max_parameter_values));
  }
}

void hold_whole(std::string_view kind, const frames::shared_entry& e) {
  at_most(kind, "size of shared entry \"" + e.name + "\"", e.size, max_shared_bytes);
}

// -- fields --------------------------------------------------------------------------------------------------

struct no_rule {};

template <class T>
struct number_of {
  using type = T;
};
template <class T>
requires std::is_enum_v<T>
struct number_of<T> : std::underlying_type<T> {
};

/// Each field is read once: what has been read counts against the limit of reading.
template <class F>
class field_reader {
 public:
  field_reader(capnp::DynamicStruct::Reader from, std::string_view kind)
      : from_(from), numbers_(capnp::AnyStruct::Reader(from).getDataSection()), kind_(kind) {}

  template <class T, class... Rules>
  void operator()(const char* name, T& to, const Rules&... rules) {
    if constexpr (std::is_enum_v<T> || std::is_arithmetic_v<T>)
      read_number(name, to, rules...);
    else if constexpr (std::is_same_v<T, std::string> && sizeof...(Rules) == 0)
      to = text(get(name), text_of{name});
    else
      read(get(name), to, rules...);
  }
  template <class Fill>
  void in(const char* name, Fill fill) {
    fill(field_reader<Fill>(get(name).template as<capnp::DynamicStruct>(), kind_));
  }

 private:
  using any = capnp::DynamicValue::Reader;

  [[nodiscard]] any get(const char* name) {
    return from_.get(order_.next(from_.getSchema(), name).in_schema);
  }

  template <class T, class Rule = no_rule>
  void take(T number, auto& to, const Rule& rule = {}) const {
    using kept = std::remove_cvref_t<decltype(to)>;
    if constexpr (std::is_enum_v<kept>) hold_named(static_cast<const kept*>(nullptr), number);
    if constexpr (!std::is_same_v<Rule, no_rule>) hold(kind_, rule, number);
    to = static_cast<kept>(number);
  }
  /// A struct of an older writer may end before it.
  template <class T, class... Rules>
  void read_number(const char* name, T& to, const Rules&... rules) {
    using number = typename number_of<T>::type;
    const auto& at = order_.next(from_.getSchema(), name);
    if (at.type != wire_type<T>)
      return take(from_.get(at.in_schema).template as<number>(), to, rules...);
    number got{};
    if constexpr (std::is_same_v<T, bool>) {
      if (at.place / 8 < numbers_.size()) got = (numbers_[at.place / 8] >> at.place % 8 & 1u) != 0;
    } else {
      if ((at.place + std::size_t{1}) * sizeof(T) <= numbers_.size())
        std::memcpy(&got, &numbers_[at.place * sizeof(T)], sizeof(T));
    }
    take(got, to, rules...);
  }
  template <class T, class Rule = no_rule>
  void read(const any& from, T& to, const Rule& rule = {}) const {
    if constexpr (std::is_enum_v<T> || std::is_arithmetic_v<T>) {
      take(from.template as<typename number_of<T>::type>(), to, rule);
    } else {
      // A frame in another one speaks for itself.
      std::string_view kind = kind_;
      if constexpr (std::is_same_v<T, frames::next_view>) kind = row_of<T>.name;
      fields(to, field_reader<T>(from.template as<capnp::DynamicStruct>(), kind));
      hold_whole(kind, to);
    }
  }
  void read(const any& from, std::string& to, const text_of& rule) const { to = text(from, rule); }
  void read(const any& from, std::vector<bool>& to, const many& rule) const {
    const auto bytes = from.template as<capnp::Data>();
    hold(kind_, rule, 8 * bytes.size());
    for (const auto byte : bytes)
      for (unsigned bit = 0; bit < 8; ++bit) to.push_back((byte >> bit & 1u) != 0);
  }
  void read(const any& from, std::vector<std::int64_t>& to) const {
    for (const auto d : from.template as<capnp::DynamicList>()) to.push_back(d.as<std::uint32_t>());
  }
  template <class T, class Count, class... Rules>
  void read(const any& from, std::vector<T>& to, const Count& count,
            const Rules&... of_each) const {
    const auto list = from.template as<capnp::DynamicList>();
    hold(kind_, count, list.size());
    to.reserve(list.size());
    for (const auto each : list) {
      T element{};
      read(each, element, of_each...);
      if constexpr (std::is_same_v<T, seat_id>) {
        if (!to.empty()) hold_order(kind_, to.back(), element);
      } else if constexpr (std::is_same_v<T, frames::member>) {
        if (!to.empty()) hold_order(kind_, to.back().seat, element.seat);
      }
      to.push_back(std::move(element));
    }
  }
  [[nodiscard]] std::string text(const any& from, const text_of& rule) const {
    if (from.getType() == capnp::DynamicValue::DATA) {
      const auto d = from.template as<capnp::Data>();
      return {reinterpret_cast<const char*>(d.begin()), d.size()};
    }
    const auto t = from.template as<capnp::Text>();
    at_most(kind_, std::string(rule.label) + "'s length", t.size(), rule.most);
    return {t.cStr(), t.size()};
  }
  void hold_named(const void*, std::uint64_t) const {}
  void hold_named(const wire_format*, std::uint64_t number) const {
    at_most(kind_, "wire format", number, wire_formats - 1);
  }
  void hold_named(const optimizer_rule*, std::uint64_t number) const {
    if (number >= optimizer_rules)
      throw bad_frame(kind_, "optimizer", std::to_string(number),
                      "less than " + std::to_string(optimizer_rules));
  }

  capnp::DynamicStruct::Reader from_;
  kj::ArrayPtr<const kj::byte> numbers_;
  std::string_view kind_;
  field_order<F> order_;
};

template <class F>
frame_header read_as(const capnp::DynamicValue::Reader& from) {
  F f;
  if constexpr (!std::is_empty_v<F>) {
    fields(f, field_reader<F>(from.as<capnp::DynamicStruct>(), row_of<F>.name));
    hold_whole(row_of<F>.name, f);
  }
  return f;
}

using read_function = frame_header (*)(const capnp::DynamicValue::Reader&);
template <class... F>
constexpr std::array<read_function, sizeof...(F)> readers_of(const std::variant<F...>*) {
  return {&read_as<F>...};
}
constexpr auto readers = readers_of(static_cast<const frame_header*>(nullptr));

/// The place in frame_header of each member of wire.capnp's Frame; where there is none, readers.size().
std::size_t kind_of(std::size_t member) {
  static const auto kinds = [] {
    std::vector<std::size_t> out;
    for (std::size_t kind = 0; kind < readers.size(); ++kind) {
      const auto at = member_of(kind).getProto().getDiscriminantValue();
      if (at >= out.size()) out.resize(at + std::size_t{1}, readers.size());
      out[at] = kind;
    }
    return out;
  }();
  return member < kinds.size() ? kinds[member] : readers.size();
}

frame_header read(wire::Frame::Reader frame) {
  const auto member = static_cast<std::size_t>(frame.which());
  const auto kind = kind_of(member);
  if (kind == readers.size())
    throw bad_frame(
        "frame", "kind", std::to_string(member),
        "at most " + std::to_string(readers.size() - 1) + " (the peer may be a newer build)");
  return readers[kind](capnp::DynamicStruct::Reader(frame).get(member_of(kind)));
}

// Reads an untrusted message that lies in whole, aligned words.
decoded_header decode_words(kj::ArrayPtr<const capnp::word> words) {
  capnp::ReaderOptions bounds;
  // Each word once, plus what Cap'n Proto counts for empty list elements: a message cannot make us
  // work for longer than it is.
  bounds.traversalLimitInWords = words.size() + 64;
  bounds.nestingLimit = 8;
  try {
    capnp::FlatArrayMessageReader message(words, bounds);
    const auto frame = message.getRoot<wire::Frame>();
    decoded_header d{{{seat_id{frame.getFrom()}, frame.getEpoch()},
                      frame.getPayloadBytes(),
                      frame.getPayloadChecksum()},
                     read(frame)};
    const auto kind = kind_name(d.header);
    if (!carries_nets(d.header))
      at_most(kind, "header size", words.size() * sizeof(capnp::word), max_header_bytes);
    at_most(kind, "payload size", d.payload_bytes, has_payload(d.header) ? max_payload_bytes : 0);
    return d;
  } catch (const kj::Exception& e) {
    throw bad_frame("frame", "header", e.getDescription().cStr(), "a Cap'n Proto Frame");
  }
}

}  // namespace

decoded_header decode_header(std::span<const std::byte> bytes) {
  if (bytes.empty() || bytes.size() % sizeof(capnp::word) != 0) {
    throw bad_frame("frame", "header size", std::to_string(bytes.size()),
                    "a positive multiple of 8");
  }
  at_most("frame", "header size", bytes.size(), max_view_bytes);
  const auto count = bytes.size() / sizeof(capnp::word);
  std::array<capnp::word, 64> small;
  if (count <= small.size()) {  // the caller's bytes need not be aligned; a copy of 100 bytes is
    std::memcpy(small.data(), bytes.data(), bytes.size());
    return decode_words(kj::arrayPtr(small.data(), count));
  }
  auto large = kj::heapArray<capnp::word>(count);
  std::memcpy(large.begin(), bytes.data(), bytes.size());
  return decode_words(large);
}

}  // namespace poseidon
