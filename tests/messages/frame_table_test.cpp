// That the table of frames, their fields and wire.capnp say the same, for every kind of frame.
#include "messages/frame_table.hpp"

#include "messages/wire/frame_fields.hpp"

#include <capnp/schema.h>
#include <doctest/doctest.h>

#include <set>
#include <string>

namespace poseidon {
namespace {

template <class Use, class... F>
void for_each_kind(const std::variant<F...>*, Use use) {
  (use(F{}), ...);
}
template <class Use>
void for_each_kind(Use use) {
  for_each_kind(static_cast<const frame_header*>(nullptr), use);
}

/// The first letters of names in wire.capnp that no frame has any more.
bool is_obsolete(const std::string& name) {
  return name.starts_with("obsolete");
}

/// Holds the names that fields() gives to those of a struct in wire.capnp.
struct schema_check {
  capnp::StructSchema schema;
  std::set<std::string> named = {};

  template <class T, class... Rules>
  void operator()(const char* name, const T& field, const Rules&...) {
    const std::string where = std::string(schema.getShortDisplayName().cStr()) + "." + name;
    CAPTURE(where);
    CHECK(named.insert(name).second);  // once
    const auto found = schema.findFieldByName(name);
    REQUIRE(found != nullptr);
    KJ_IF_MAYBE (f, found) check(f->getType(), field);
  }
  template <class Fill>
  void in(const char* name, Fill fill) {
    CHECK(named.insert(name).second);
    schema_check part{schema.getFieldByName(name).getType().asStruct()};
    fill(part);  // a part of ViewBallot is enough
  }
  template <class T>
  static void check(capnp::Type type, const T& field) {
    if constexpr (requires { field.front(); } && !std::is_same_v<T, std::string> &&
                  !std::is_same_v<T, std::vector<bool>>) {
      REQUIRE(type.isList());
      check(type.asList().getElementType(), typename T::value_type{});
    } else if constexpr (std::is_class_v<T> && !requires { field.empty(); }) {
      REQUIRE(type.isStruct());
      all_of(type.asStruct(), field);
    }
  }
  /// Each field of the struct is one of the frame's, or obsolete.
  template <class T>
  static void all_of(capnp::StructSchema schema, const T& frame) {
    schema_check names{schema};
    fields(frame, names);
    const std::string name = schema.getShortDisplayName().cStr();
    for (const auto f : schema.getFields()) {
      const std::string field = f.getProto().getName().cStr();
      CAPTURE(name + "." + field);
      if (!is_obsolete(field) && name != "ViewBallot") CHECK(names.named.contains(field));
    }
  }
};

TEST_CASE(
    "frame_table: each kind has a row, and a member of wire.capnp's Frame with the same fields") {
  std::set<std::string> names;
  std::set<std::string> members;
  for_each_kind([&]<class F>(const F& frame) {
    const frame_header h{frame};
    CAPTURE(kind_name(h));
    CHECK(names.emplace(row_of<F>.name).second);
    const auto& member = member_of(h.index());
    members.insert(member.getProto().getName().cStr());
    if constexpr (std::is_empty_v<F>)
      CHECK(member.getType().isVoid());
    else
      schema_check::all_of(member.getType().asStruct(), frame);
  });
  const auto frame = member_of(0).getContainingStruct();
  const auto kinds = frame.getUnionFields();
  for (const auto f : kinds) {
    const std::string name = f.getProto().getName().cStr();
    CAPTURE(name);
    if (!is_obsolete(name)) CHECK(members.contains(name));
  }
}

TEST_CASE("frame_table: what a node may hear has a stage, and what it never hears has none") {
  for_each_kind([]<class F>(const F&) {
    CAPTURE(row_of<F>.name);
    CHECK((row_of<F>.during != stages::never) == reaches_node<F>);
    // Values are bounded by their order.
    if (row_of<F>.view == frame_view::readers) CHECK(row_of<F>.budget == frame_budget::free);
    CHECK((row_of<F>.turns.most > 0 || !row_of<F>.turns.of_view));
  });
}

}  // namespace
}  // namespace poseidon
