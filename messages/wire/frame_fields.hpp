// messages/wire/frame_fields.hpp
//
// What stands in each frame: its fields by their names in wire.capnp, with what a reader holds them to. encode.cpp and decode.cpp walk
// this one list. A visitor `v` takes a name, the field, and where they are more than the type says, its rules.
#pragma once
#include "messages/wire/codec.hpp"

#include <capnp/schema.h>

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace poseidon {

/// A number; `label` is its name in messages.
struct within {
  std::string_view label;
  std::uint64_t least = 0, most = 0;
};
/// The same, where a message tells both bounds.
struct between {
  std::string_view label;
  std::int64_t least = 0, most = 0;
};
/// A rate; 0 if it may be.
struct rate_of {
  std::string_view label;
  bool may_be_zero = false;
};
/// A text, or each one of a list.
struct text_of {
  std::string_view label;
  std::size_t most = max_text_bytes;
};
/// Of a list: how many.
struct many {
  std::string_view label;
  std::size_t most = 0, least = 0;
};
/// Of a list: none, or one for each member.
struct one_each {
  std::size_t members = 0;
};

inline constexpr within replicas{"replicas", 1, max_replicas}, route{"route", 0, 5};
inline constexpr many routes{"number of routes", max_parameters},
    rows{"number of rows", max_parameters}, members{"number of members", max_members, 1},
    witnesses{"number of witnesses", max_members};

/// F is T, or T that is not to be changed.
template <class F, class T>
concept a = std::same_as<std::remove_const_t<F>, T>;

// -- parts of frames -----------------------------------------------------------------------------------------

// clang-format off
void fields(a<step_mark> auto& f, auto&& v) { v("rate", f.rate), v("digest", f.digest), v("wire", f.wire); }
void fields(a<frames::byte_digest> auto& f, auto&& v) { v("high", f.high), v("low", f.low); }
void fields(a<frames::ballot> auto& f, auto&& v) { v("round", f.round), v("seat", f.seat); }
void fields(a<frames::share> auto& f, auto&& v) {
  v("replicas", f.replicas, replicas), v("samples", f.samples, within{"samples of a share", 0, max_share_samples});
}
void fields(a<frames::member> auto& f, auto&& v) {
  v("seat", f.seat), v("address", f.address, text_of{"address of a member"});
  v("fingerprint", f.fingerprint, text_of{"fingerprint", max_fingerprint_bytes});
}
void fields(a<frames::former_view> auto& f, auto&& v) {
  v("seats", f.seats, many{"number of former members", max_members}), v("routes", f.routes, routes, route);
}
void fields(a<frames::data_set> auto& f, auto&& v) {
  v("net", f.net, within{"net of a data set", 0, max_test_nets}), v("layer", f.layer, text_of{"layer of a data set"});
  v("sample", f.sample, text_of{"sample of a data set"}), v("records", f.records);
}
void fields(a<frames::declared_parameter> auto& f, auto&& v) {
  v("name", f.name, text_of{"name of a parameter"}), v("dims", f.dims), v("given", f.given), v("first", f.first);
  v("bundle", f.bundle);
}
void fields(a<frames::given_state> auto& f, auto&& v) {
  v("bytes", f.bytes, within{"bytes of given state", 0, max_shared_bytes}), v("own", f.own, within{"own bytes of given state", 0, f.bytes});
  v("digest", f.digest);
}
void fields(a<frames::shared_entry> auto& f, auto&& v) {
  v("name", f.name, text_of{"name of a shared entry"}), v("kind", f.kind, text_of{"kind of a shared entry"});
  v("size", f.size), v("digest", f.digest);
}

// -- frames --------------------------------------------------------------------------------------------------

template <class F>
  requires std::is_empty_v<F>
void fields(F&, auto&&) {}

void fields(a<frames::view> auto& f, auto&& v) {
  v("epoch", f.epoch), v("you", f.you), v("nodes", f.members, members), v("before", f.before), v("prospect", f.prospect);
  v("witnesses", f.witnesses, witnesses), v("kinds", f.kinds, many{"number of kinds", max_members});
  v("solver", f.solver), v("seed", f.seed), v("run", f.run), v("firstClock", f.first_clock), v("firstSample", f.first_sample);
  v("testPhases", f.test_phases), v("routes", f.routes, routes, route);
  v("wire", f.wire, many{"number of wire formats", max_parameters}, within{"wire format", 0, wire_formats - 1});
  v("watched", f.watched), v("routesFollowLinks", f.routes_follow_links);
  v("reasons", f.reasons, many{"number of reasons", max_parameters}, text_of{"reason"});
  v("replicas", f.replicas, within{"replicas", 0, max_replicas}), v("survive", f.survive, within{"nodes to survive", 0, max_survive});
  v("zeroesLostState", f.zeroes_lost_state), v("stateZeroedAt", f.state_zeroed_at);
  v("shares", f.shares, one_each{f.members.size()}), v("parameters", f.parameters, many{"number of parameters", max_parameters});
  v("dataSets", f.data_sets, many{"number of data sets", max_data_sets}), v("shared", f.shared, many{"number of shared entries", max_shared});
  v("optimizer", f.optimizer), v("takesNewcomers", f.takes_newcomers), v("given", f.given);
}
void fields(a<frames::next_view> auto& f, auto&& v) {
  v("epoch", f.epoch), v("nodes", f.members, members), v("routes", f.routes, routes, route), v("factorRows", f.factor_rows, rows);
  v("shares", f.shares, one_each{f.members.size()}), v("why", f.why), v("firstClock", f.first_clock);
  v("lost", f.lost, many{"number of lost members", max_members}), v("allHaveValues", f.all_have_values);
  v("witnesses", f.witnesses, witnesses), v("lacking", f.lacking, many{"number of members without values", max_members});
  v("given", f.given);
}
void fields(a<frames::view_prepare> auto& f, auto&& v) { v("epoch", f.epoch), v("number", f.number); }
void fields(a<frames::view_accept> auto& f, auto&& v) { v("epoch", f.epoch), v("number", f.number), v("value", f.value); }
void fields(a<frames::view_accepted> auto& f, auto&& v) { v("epoch", f.epoch), v("number", f.number), v("promised", f.promised); }
void fields(a<frames::view_promise> auto& f, auto&& v) {
  v.in("ballot", [&](auto&& b) { b("epoch", f.epoch), b("number", f.number), b("promised", f.promised); });
  v.in("accepted", [&](auto&& b) {
    b("number", f.accepted);
    if (f.accepted.round > 0) b("value", f.value);
  });
  v("whole", f.whole), v("version", f.version), v("drained", f.drained);
  v("hears", f.hears, many{"number of members that it hears", max_members}), v("dead", f.dead, many{"number of dead members", max_members});
}
void fields(a<frames::time_net> auto& f, auto&& v) { v("solver", f.solver), v("seed", f.seed), v("measure", f.measure); }
void fields(a<frames::net_timed> auto& f, auto&& v) {
  v("samplesPerSecond", f.samples_s, rate_of{"samples per second", true}), v("replicas", f.replicas, replicas);
}
void fields(a<frames::gathering> auto& f, auto&& v) { v("there", f.there), v("wanted", f.wanted); }
void fields(a<frames::member_ready> auto& f, auto&& v) {
  v("replicas", f.replicas, replicas), v("epoch", f.epoch);
  v("hasParameters", f.has_parameters, many{"number of parameters", max_parameters});
  v("hasShared", f.has_shared, many{"number of shared entries", max_shared});
}
void fields(a<frames::join_ready> auto& f, auto&& v) { v("replicas", f.replicas, replicas); }
void fields(a<frames::leave_wanted> auto& f, auto&& v) { v("reason", f.why); }
void fields(a<frames::suspect> auto& f, auto&& v) { v("seat", f.seat), v("reason", f.why); }
void fields(a<frames::worker_done> auto& f, auto&& v) { v("version", f.version), v("othersGoOn", f.others_go_on); }
void fields(a<frames::worker_left> auto& f, auto&& v) { v("left", f.left), v("version", f.version), v("othersGoOn", f.others_go_on); }
void fields(a<frames::worker_paused> auto& f, auto&& v) { v("clock", f.clock), v("drained", f.drained); }
void fields(a<frames::drain> auto& f, auto&& v) { v("clock", f.clock), v("forNewcomers", f.for_newcomers); }
void fields(a<frames::factor_offer> auto& f, auto&& v) { v("rows", f.rows, rows); }
void fields(a<frames::send_rate> auto& f, auto&& v) { v("mbitS", f.mbit_s, rate_of{"Mbit/s"}), v("probed", f.probed); }
void fields(a<frames::stop_requested> auto& f, auto&& v) { v("reason", f.reason); }
void fields(a<frames::stop_after> auto& f, auto&& v) { v("version", f.version), v("reason", f.reason); }
void fields(a<frames::goodbye> auto& f, auto&& v) { v("cause", f.of, within{"cause", 0, 4}), v("reason", f.reason); }
void fields(a<frames::probe> auto& f, auto&& v) { v("round", f.round), v("last", f.last); }
void fields(a<frames::probe_heard> auto& f, auto&& v) { v("round", f.round); }
void fields(a<frames::watch> auto& f, auto&& v) {
  v("intervalMs", f.interval_ms, between{"interval in ms", min_report_ms, max_report_ms}), v("sentNs", f.sent_ns);
}
void fields(a<frames::worker_report> auto& f, auto&& v) {
  v("clock", f.clock), v("testNet", f.test_net, between{"test net", -1, max_test_nets - 1}), v("passes", f.passes);
  v("sums", f.sums, many{"number of sums", max_report_values}), v("images", f.images);
  v("communicationNs", f.communication_ns), v("exposedNs", f.exposed_ns);
}

// -- frames with values --------------------------------------------------------------------------------------

void fields(a<frames::push_gradient> auto& f, auto&& v) {
  v("chunk", f.chunk), v("clock", f.clock), v("nothing", f.nothing), v("step", f.step);
}
void fields(a<frames::gradient_squares> auto& f, auto&& v) { v("clock", f.clock); }
void fields(a<frames::factors> auto& f, auto&& v) {
  v("layer", f.layer), v("clock", f.clock), v("rows", f.rows), v("first", f.first), v("step", f.step);
}
void fields(a<frames::lowrank_factor> auto& f, auto&& v) { v("layer", f.layer), v("clock", f.clock), v("second", f.second); }
void fields(a<frames::fresh_parameters> auto& f, auto&& v) {
  v("chunk", f.chunk), v("version", f.version), v("nothing", f.nothing), v("format", f.format);
}
void fields(a<frames::shared_state> auto& f, auto&& v) { v("index", f.index), v("first", f.first); }
void fields(a<frames::summed_gradient> auto& f, auto&& v) {
  v("chunk", f.chunk), v("clock", f.clock), v("rate", f.rate), v("decay", f.decay), v("scale", f.scale), v("checksum", f.checksum);
}
void fields(a<frames::install_history> auto& f, auto&& v) { v("chunk", f.chunk), v("slot", f.slot), v("first", f.first); }
void fields(a<frames::gather_history> auto& f, auto&& v) { v("version", f.version); }
void fields(a<frames::history> auto& f, auto&& v) { v("chunk", f.chunk), v("slot", f.slot), v("version", f.version); }
// clang-format on

/// The member of wire.capnp's Frame that holds frames of this kind, by their place in frame_header: "member_ready" is memberReady there.
[[nodiscard]] const capnp::StructSchema::Field& member_of(std::size_t kind);

/// A field of the schema, and where a number lies in its struct: Cap'n Proto's reflection takes 50 ns for each access.
struct known_field {
  const char* name;
  capnp::StructSchema::Field in_schema;
  capnp::schema::Type::Which type;
  std::uint32_t place;  ///< in units of its size
};
[[nodiscard]] known_field field_of(capnp::StructSchema schema, const char* name);

/// How Cap'n Proto calls a number of this type.
template <class T>
inline constexpr auto wire_type = [] {
  using enum capnp::schema::Type::Which;
  if constexpr (std::is_enum_v<T>)
    return wire_type<std::underlying_type_t<T>>;
  else if constexpr (std::is_same_v<T, bool>)
    return BOOL;
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? FLOAT32 : FLOAT64;
  else if constexpr (std::is_signed_v<T>)
    return sizeof(T) == 1 ? INT8 : sizeof(T) == 2 ? INT16 : sizeof(T) == 4 ? INT32 : INT64;
  else
    return sizeof(T) == 1 ? UINT8 : sizeof(T) == 2 ? UINT16 : sizeof(T) == 4 ? UINT32 : UINT64;
}();

/// The fields of one F as a visitor meets them: in the same order each time, but for those that it may leave out. Frames with values come
/// thousands of times a second, so each name, a literal, is looked up once in a thread. F is a type, or a tag for a group.
template <class F>
class field_order {
 public:
  [[nodiscard]] const known_field& next(capnp::StructSchema of, const char* name) {
    thread_local std::vector<known_field> known;
    for (; at_ < known.size(); ++at_)
      if (known[at_].name == name) return known[at_++];
    for (at_ = 0; at_ < known.size(); ++at_)
      if (known[at_].name == name) return known[at_++];
    known.push_back(field_of(of, name));
    at_ = known.size();
    return known.back();
  }

 private:
  std::size_t at_ = 0;
};

}  // namespace poseidon
