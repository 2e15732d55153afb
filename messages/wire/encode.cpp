// messages/wire/encode.cpp - frames to Cap'n Proto, by the fields that frame_fields.hpp lists.
#include "messages/frame_table.hpp"
#include "messages/wire/frame_fields.hpp"

#include <capnp/dynamic.h>
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/io.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cstring>
#include <utility>

#include "wire.capnp.h"

namespace poseidon {
namespace {

/// What has no bytes, and what equals its default, stays away: a reader finds the same.
template <class F>
class field_writer {
 public:
  explicit field_writer(capnp::DynamicStruct::Builder to)
      : to_(to), numbers_(capnp::AnyStruct::Builder(to).getDataSection()) {}

  template <class T, class... Rules>
  void operator()(const char* name, const T& from, const Rules&...) {
    if constexpr (std::is_enum_v<T>)
      write_number(name, static_cast<std::underlying_type_t<T>>(from));
    else if constexpr (std::is_arithmetic_v<T>)
      write_number(name, from);
    else if (!is_default(from))
      write(name, from);
  }
  template <class Fill>
  void in(const char* name, Fill fill) {
    fill(field_writer<Fill>(to_.init(field(name)).template as<capnp::DynamicStruct>()));
  }

 private:
  [[nodiscard]] const capnp::StructSchema::Field& field(const char* name) {
    return order_.next(to_.getSchema(), name).in_schema;
  }
  template <class T>
  void write_number(const char* name, T from) {
    const auto& at = order_.next(to_.getSchema(), name);
    if (at.type != wire_type<T>) return to_.set(at.in_schema, from);
    if constexpr (std::is_same_v<T, bool>) {
      if (from) numbers_[at.place / 8] |= static_cast<kj::byte>(1u << at.place % 8);
    } else {
      std::memcpy(&numbers_[at.place * sizeof(T)], &from, sizeof(T));
    }
  }
  template <class T>
  static bool is_default(const T& f) {
    if constexpr (requires { f.empty(); })
      return f.empty();
    else if constexpr (requires { f == f; })
      return f == T{};
    else
      return false;
  }
  template <class T>
  void write(const char* name, const T& from) {
    fields(from, field_writer<T>(to_.init(field(name)).template as<capnp::DynamicStruct>()));
  }
  void write(const char* name, const std::string& from) {
    const auto& at = field(name);
    if (at.getType().isData())
      to_.set(at, capnp::Data::Reader(reinterpret_cast<const kj::byte*>(from.data()), from.size()));
    else
      to_.set(at, text(from));
  }
  void write(const char* name, const std::vector<bool>& bits) {
    std::vector<kj::byte> bytes((bits.size() + 7) / 8);
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i]) bytes[i / 8] = static_cast<kj::byte>(bytes[i / 8] | 1u << i % 8);
    to_.set(field(name), capnp::Data::Reader(bytes.data(), bytes.size()));
  }
  template <class T>
  void write(const char* name, const std::vector<T>& from) {
    auto list =
        to_.init(field(name), static_cast<unsigned>(from.size())).template as<capnp::DynamicList>();
    for (unsigned i = 0; i < from.size(); ++i) {
      if constexpr (std::is_enum_v<T>)
        list.set(i, static_cast<std::underlying_type_t<T>>(from[i]));
      else if constexpr (std::is_arithmetic_v<T>)
        list.set(i, from[i]);
      else if constexpr (std::is_same_v<T, std::string>)
        list.set(i, text(from[i]));
      else
        fields(from[i], field_writer<T>(list[i].template as<capnp::DynamicStruct>()));
    }
  }
  /// Our own reasons can be long (a chain of causes); their start says what happened.
  capnp::Text::Reader text(const std::string& from) {
    if (from.size() <= max_text_bytes) return {from.c_str(), from.size()};
    cut_ = from.substr(0, max_text_bytes);
    return {cut_.c_str(), cut_.size()};
  }

  capnp::DynamicStruct::Builder to_;
  kj::ArrayPtr<kj::byte> numbers_;  // of this struct, each zero so far
  field_order<F> order_;
  std::string cut_;
};

}  // namespace

const capnp::StructSchema::Field& member_of(std::size_t kind) {
  static const auto members = [] {
    std::vector<capnp::StructSchema::Field> out;
    const auto frame = capnp::Schema::from<wire::Frame>();
    for (const auto& row : rows_of_kinds()) {
      std::string name;
      for (std::size_t i = 0; i < row.name.size(); ++i) {
        const bool begins_word = i > 0 && row.name[i - 1] == '_';
        if (row.name[i] != '_')
          name += begins_word ? static_cast<char>(std::toupper(row.name[i])) : row.name[i];
      }
      out.push_back(frame.getFieldByName(name));
    }
    return out;
  }();
  return members[kind];
}

known_field field_of(capnp::StructSchema schema, const char* name) {
  static_assert(std::endian::native == std::endian::little, "numbers lie in messages as here");
  const auto field = schema.getFieldByName(name);
  const auto proto = field.getProto();
  // A group has no place, and a number with a default lies there changed: reflection takes those.
  if (!proto.isSlot() || proto.getSlot().getHadExplicitDefault())
    return {name, field, capnp::schema::Type::VOID, 0};
  const auto slot = proto.getSlot();
  return {name, field, slot.getType().which(), slot.getOffset()};
}

void encode_header(const frame_header& h, const envelope& e, std::vector<std::byte>& out) {
  std::array<capnp::word, 128> first_segment{};  // enough for all but a view: no allocation
  capnp::MallocMessageBuilder message(kj::arrayPtr(first_segment.data(), first_segment.size()));
  auto frame = message.initRoot<wire::Frame>();
  frame.setFrom(value(e.from.seat));
  frame.setEpoch(e.from.epoch);
  frame.setPayloadBytes(static_cast<std::uint32_t>(e.payload_bytes));
  frame.setPayloadChecksum(e.payload_checksum);
  std::visit(
      [&]<class F>(const F& f) {
        capnp::DynamicStruct::Builder to(frame);
        if constexpr (std::is_empty_v<F>)
          to.set(member_of(h.index()), capnp::VOID);
        else
          fields(f, field_writer<F>(
                        to.init(member_of(h.index())).template as<capnp::DynamicStruct>()));
      },
      h);
  const auto bytes = capnp::computeSerializedSizeInWords(message) * sizeof(capnp::word);
  const auto limit = carries_nets(h) ? max_view_bytes : max_header_bytes;
  if (bytes > limit) {
    throw std::length_error(std::string(kind_name(h)) + " takes " + std::to_string(bytes) +
                            " bytes on the wire, a node reads at most " + std::to_string(limit) +
                            ". The solver and net files are too large to send.");
  }
  out.resize(bytes);
  kj::ArrayOutputStream stream({reinterpret_cast<kj::byte*>(out.data()), out.size()});
  capnp::writeMessage(stream, message);
}

}  // namespace poseidon
