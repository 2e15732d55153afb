// messages/wire/encode.cpp - frames to Cap'n Proto, by the fields that frame_fields.hpp lists.
#include "messages/frame_table.hpp"
#include "messages/wire/frame_fields.hpp"

#include <capnp/dynamic.h>
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/io.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "wire.capnp.h"

namespace poseidon {
namespace {

/// What has no bytes, and what equals its default, stays away: a reader finds the same.
class field_writer {
 public:
  explicit field_writer(capnp::DynamicStruct::Builder to) : to_(to) {}

  template <class T, class... Rules>
  void operator()(const char* name, const T& from, const Rules&...) {
    if constexpr (std::is_enum_v<T>)
      to_.set(field(name), static_cast<std::underlying_type_t<T>>(from));
    else if constexpr (std::is_arithmetic_v<T>)
      to_.set(field(name), from);
    else if (!is_default(from))
      write(name, from);
  }
  template <class Fill>
  void in(const char* name, Fill fill) {
    fill(field_writer(to_.init(field(name)).as<capnp::DynamicStruct>()));
  }

 private:
  [[nodiscard]] const capnp::StructSchema::Field& field(const char* name) const {
    return field_named(to_.getSchema(), name);
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
    in(name, [&](field_writer w) { fields(from, w); });
  }
  void write(const char* name, const std::string& from) {
    if (field(name).getType().isData())
      to_.set(name,
              capnp::Data::Reader(reinterpret_cast<const kj::byte*>(from.data()), from.size()));
    else
      to_.set(field(name), text(from));
  }
  void write(const char* name, const std::vector<bool>& bits) {
    std::vector<kj::byte> bytes((bits.size() + 7) / 8);
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i]) bytes[i / 8] = static_cast<kj::byte>(bytes[i / 8] | 1u << i % 8);
    to_.set(field(name), capnp::Data::Reader(bytes.data(), bytes.size()));
  }
  template <class T>
  void write(const char* name, const std::vector<T>& from) {
    auto list = to_.init(field(name), static_cast<unsigned>(from.size())).as<capnp::DynamicList>();
    for (unsigned i = 0; i < from.size(); ++i) {
      if constexpr (std::is_enum_v<T>)
        list.set(i, static_cast<std::underlying_type_t<T>>(from[i]));
      else if constexpr (std::is_arithmetic_v<T>)
        list.set(i, from[i]);
      else if constexpr (std::is_same_v<T, std::string>)
        list.set(i, text(from[i]));
      else
        fields(from[i], field_writer(list[i].as<capnp::DynamicStruct>()));
    }
  }
  /// Our own reasons can be long (a chain of causes); their start says what happened.
  capnp::Text::Reader text(const std::string& from) {
    if (from.size() <= max_text_bytes) return {from.c_str(), from.size()};
    cut_ = from.substr(0, max_text_bytes);
    return {cut_.c_str(), cut_.size()};
  }

  capnp::DynamicStruct::Builder to_;
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

const capnp::StructSchema::Field& field_named(capnp::StructSchema of, const char* name) {
  thread_local std::map<std::pair<std::uint64_t, const char*>, capnp::StructSchema::Field> known;
  const std::pair key{of.getProto().getId(), name};
  const auto at = known.find(key);
  return at != known.end() ? at->second : known.emplace(key, of.getFieldByName(name)).first->second;
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
          fields(f,
                 field_writer(to.init(member_of(h.index())).template as<capnp::DynamicStruct>()));
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
