// messages/wire/decode.cpp - Cap'n Proto to frames: every size is compared before anything is copied. Long because every kind
// of frame is read here, and nowhere else.
#include "messages/wire/at_most.hpp"
#include "messages/wire/codec.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "wire.capnp.h"

namespace poseidon {
namespace {

std::string text(std::string_view kind, std::string_view field, capnp::Text::Reader t) {
  at_most(kind, std::string(field) + "'s length", t.size(), max_text_bytes);
  return {t.cStr(), t.size()};
}

std::string blob(capnp::Data::Reader d) {
  return {reinterpret_cast<const char*>(d.begin()), d.size()};
}

template <class Routes>
std::vector<std::uint8_t> read_routes(std::string_view kind, Routes routes) {
  at_most(kind, "number of routes", routes.size(), max_parameters);
  std::vector<std::uint8_t> out;
  for (const auto route : routes) {
    at_most(kind, "route", route, 1);
    out.push_back(route);
  }
  return out;
}

std::vector<std::uint32_t> read_rows(std::string_view kind,
                                     capnp::List<std::uint32_t>::Reader rows) {
  at_most(kind, "number of rows", rows.size(), max_parameters);
  std::vector<std::uint32_t> out;
  for (const auto r : rows) out.push_back(r);
  return out;
}

/// Rises strictly: the order of members is that of their seats.
void check_order(std::string_view kind, seat_id before, seat_id seat) {
  if (seat <= before)
    throw bad_frame(kind, "seat", std::to_string(value(seat)),
                    "more than that of the member before, " + std::to_string(value(before)));
}

std::vector<frames::member> read_nodes(std::string_view kind, const std::string& count,
                                       capnp::List<wire::Member>::Reader members) {
  at_most(kind, count, members.size(), max_members);
  std::vector<frames::member> out;
  for (const auto m : members) {
    const seat_id seat{m.getSeat()};
    if (seat == no_seat) throw bad_frame(kind, "seat", std::to_string(value(seat)), "a member's");
    if (!out.empty()) check_order(kind, out.back().seat, seat);
    const auto fingerprint = m.getFingerprint();  // once: what has been read counts
    at_most(kind, "fingerprint's length", fingerprint.size(), max_fingerprint_bytes);
    out.push_back({seat, text(kind, "address of a member", m.getAddress()),
                   text(kind, "fingerprint", fingerprint)});
  }
  return out;
}

std::vector<frames::member> read_members(std::string_view kind,
                                         capnp::List<wire::Member>::Reader members) {
  if (members.size() == 0) throw bad_frame(kind, "number of members", "0", "1 or more");
  return read_nodes(kind, "number of members", members);
}

bool has(const std::vector<frames::member>& nodes, seat_id seat) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const auto& n) { return n.seat == seat; });
}

/// None of them is a member, too.
std::vector<frames::member> read_witnesses(std::string_view kind,
                                           capnp::List<wire::Member>::Reader witnesses,
                                           const std::vector<frames::member>& members) {
  auto out = read_nodes(kind, "number of witnesses", witnesses);
  for (const auto& w : out)
    if (has(members, w.seat))
      throw bad_frame(kind, "seat of a witness", std::to_string(value(w.seat)),
                      "one that no member has");
  return out;
}

std::vector<seat_id> read_seats(std::string_view kind, const std::string& field,
                                capnp::List<std::uint32_t>::Reader r) {
  at_most(kind, field, r.size(), max_members);
  std::vector<seat_id> out;
  for (const auto s : r) {
    if (!out.empty()) check_order(kind, out.back(), seat_id{s});
    out.push_back(seat_id{s});
  }
  return out;
}

frames::former_view read(wire::FormerView::Reader r) {
  frames::former_view out;
  out.seats = read_seats("view", "number of former members", r.getSeats());
  out.routes = read_routes("view", r.getRoutes());
  return out;
}

frame_header read(wire::SendRate::Reader r) {
  const auto rate = r.getMbitS();
  if (!std::isfinite(rate) || rate <= 0)
    throw bad_frame("send_rate", "Mbit/s", std::to_string(rate), "a positive number");
  return frames::send_rate{rate, r.getProbed()};
}

std::uint32_t read_replicas(std::string_view kind, std::uint32_t replicas) {
  at_most(kind, "replicas", replicas, max_replicas);
  if (replicas == 0) throw bad_frame(kind, "replicas", "0", "1 or more");
  return replicas;
}

std::vector<bool> read_bits(std::string_view kind, const char* of, capnp::Data::Reader bytes,
                            std::size_t most) {
  at_most(kind, "number of " + std::string(of), 8 * bytes.size(), most);
  std::vector<bool> out;
  for (const auto byte : bytes)
    for (unsigned bit = 0; bit < 8; ++bit) out.push_back((byte >> bit & 1u) != 0);
  return out;
}

frame_header read(wire::MemberReady::Reader r) {
  return frames::member_ready{
      read_replicas("member_ready", r.getReplicas()), r.getEpoch(),
      read_bits("member_ready", "parameters", r.getHasParameters(), max_parameters),
      read_bits("member_ready", "shared entries", r.getHasShared(), max_shared)};
}

frame_header read(wire::NetTimed::Reader r) {
  const auto rate = r.getSamplesPerSecond();
  if (!std::isfinite(rate) || rate < 0)
    throw bad_frame("net_timed", "samples per second", std::to_string(rate), "0 or more");
  return frames::net_timed{read_replicas("net_timed", r.getReplicas()), rate};
}

std::vector<frames::share> read_shares(std::string_view kind,
                                       capnp::List<wire::Share>::Reader shares,
                                       std::size_t members) {
  std::vector<frames::share> out;
  if (shares.size() != 0 && shares.size() != members)
    throw bad_frame(kind, "number of shares", std::to_string(shares.size()),
                    "0, or that of the members, " + std::to_string(members));
  for (const auto s : shares) {
    const auto replicas = read_replicas(kind, s.getReplicas());
    at_most(kind, "samples of a share", s.getSamples(), max_share_samples);
    if (s.getSamples() < replicas)
      throw bad_frame(kind, "samples of a share", std::to_string(s.getSamples()),
                      "one for each of its " + std::to_string(replicas) + " replicas, at least");
    out.push_back({s.getSamples(), replicas});
  }
  return out;
}

wire_format format_of(std::string_view kind, std::uint8_t number) {
  at_most(kind, "wire format", number, wire_formats - 1);
  return static_cast<wire_format>(number);
}

/// A frame without it has the empty mark.
step_mark read(wire::StepMark::Reader r, std::string_view kind) {
  return {r.getRate(), r.getDigest(), format_of(kind, r.getWire())};
}

frames::byte_digest read(wire::Digest::Reader r) {
  return {r.getHigh(), r.getLow()};
}

std::vector<frames::declared_parameter> read_parameters(capnp::List<wire::Parameter>::Reader r) {
  at_most("view", "number of parameters", r.size(), max_parameters);
  std::vector<frames::declared_parameter> out;
  for (const auto p : r) {
    auto& to = out.emplace_back();
    to.name = text("view", "name of a parameter", p.getName());
    const auto dims = p.getDims();  // once: what is read counts against the limit of reading
    at_most("view", "dims of parameter \"" + to.name + "\"", dims.size(), max_dims);
    std::uint64_t values = 1;
    for (const auto d : dims) {
      values *= d;
      if (values == 0 || values > max_parameter_values)
        throw bad_frame("view", "size of parameter \"" + to.name + "\"", std::to_string(values),
                        "1 to " + std::to_string(max_parameter_values));
      to.dims.push_back(d);
    }
    to.given = p.getGiven();
    to.first = read(p.getFirst());
  }
  return out;
}

std::vector<frames::shared_entry> read_shared(capnp::List<wire::SharedEntry>::Reader r) {
  at_most("view", "number of shared entries", r.size(), max_shared);
  std::vector<frames::shared_entry> out;
  for (const auto e : r) {
    auto& to = out.emplace_back();
    to.name = text("view", "name of a shared entry", e.getName());
    to.kind = text("view", "kind of a shared entry", e.getKind());
    to.size = e.getSize();
    if (to.size > max_shared_bytes)
      throw bad_frame("view", "size of shared entry \"" + to.name + "\"", std::to_string(to.size),
                      "at most " + std::to_string(max_shared_bytes));
    to.digest = read(e.getDigest());
  }
  return out;
}

std::vector<frames::data_set> read_data_sets(capnp::List<wire::DataSet>::Reader r) {
  at_most("view", "number of data sets", r.size(), max_data_sets);
  std::vector<frames::data_set> out;
  for (const auto d : r) {
    at_most("view", "net of a data set", d.getNet(), max_test_nets);
    out.push_back({d.getNet(), text("view", "layer of a data set", d.getLayer()),
                   text("view", "sample of a data set", d.getSample()), d.getRecords()});
  }
  return out;
}

frame_header read(wire::View::Reader r) {
  frames::view v;
  v.epoch = r.getEpoch();
  v.you = seat_id{r.getYou()};
  v.members = read_members("view", r.getNodes());
  v.before = read(r.getBefore());
  v.prospect = r.getProspect();
  v.witnesses = read_witnesses("view", r.getWitnesses(), v.members);
  v.kinds = read_nodes("view", "number of kinds", r.getKinds());
  const bool is_member = has(v.members, v.you) || has(v.witnesses, v.you);
  if (is_member == v.prospect || v.you == no_seat)
    throw bad_frame("view", "you", std::to_string(r.getYou()),
                    v.prospect ? "a seat that no member has" : "the seat of a member");
  v.solver = blob(r.getSolver());
  v.seed = r.getSeed();
  v.run = r.getRun();
  v.first_clock = clock_id{r.getFirstClock()};
  v.first_sample = r.getFirstSample();
  v.test_phases = r.getTestPhases();
  v.routes = read_routes("view", r.getRoutes());
  const auto formats = r.getWire();
  at_most("view", "number of wire formats", formats.size(), max_parameters);
  for (const auto format : formats) {
    at_most("view", "wire format", format, 2);
    v.wire.push_back(format);
  }
  v.watched = r.getWatched();
  v.routes_follow_links = r.getRoutesFollowLinks();
  const auto reasons = r.getReasons();
  at_most("view", "number of reasons", reasons.size(), max_parameters);
  for (const auto why : reasons) v.reasons.push_back(text("view", "reason", why));
  v.replicas = r.getReplicas();
  at_most("view", "replicas", v.replicas, max_replicas);
  v.survive = r.getSurvive();
  at_most("view", "nodes to survive", v.survive, max_survive);
  v.zeroes_lost_state = r.getZeroesLostState();
  v.state_zeroed_at = r.getStateZeroedAt();
  v.shares = read_shares("view", r.getShares(), v.members.size());
  v.parameters = read_parameters(r.getParameters());
  v.data_sets = read_data_sets(r.getDataSets());
  v.shared = read_shared(r.getShared());
  if (r.getOptimizer() >= optimizer_rules)
    throw bad_frame("view", "optimizer", std::to_string(r.getOptimizer()),
                    "less than " + std::to_string(optimizer_rules));
  v.optimizer = static_cast<optimizer_rule>(r.getOptimizer());
  return v;
}

frames::ballot read(wire::Ballot::Reader r) {
  return {r.getRound(), seat_id{r.getSeat()}};
}

frames::next_view read(wire::NextView::Reader r) {
  frames::next_view v;
  v.epoch = r.getEpoch();
  v.members = read_members("next_view", r.getNodes());
  v.routes = read_routes("next_view", r.getRoutes());
  v.factor_rows = read_rows("next_view", r.getFactorRows());
  v.shares = read_shares("next_view", r.getShares(), v.members.size());
  v.why = text("next_view", "why", r.getWhy());
  v.first_clock = clock_id{r.getFirstClock()};
  v.lost = read_seats("next_view", "number of lost members", r.getLost());
  v.all_have_values = r.getAllHaveValues();
  v.witnesses = read_witnesses("next_view", r.getWitnesses(), v.members);
  return v;
}

frame_header read(wire::ViewPromise::Reader r) {
  frames::view_promise p;
  const auto b = r.getBallot();
  p.epoch = b.getEpoch();
  p.number = read(b.getNumber());
  p.promised = read(b.getPromised());
  p.accepted = read(r.getAccepted().getNumber());
  if (p.accepted.round > 0) p.value = read(r.getAccepted().getValue());
  p.whole = r.getWhole();
  p.version = version_id{r.getVersion()};
  p.drained = r.getDrained();
  p.hears = read_seats("view_promise", "number of members that it hears", r.getHears());
  p.dead = read_seats("view_promise", "number of dead members", r.getDead());
  return p;
}

frame_header read(wire::WorkerReport::Reader r) {
  frames::worker_report w;
  w.clock = clock_id{r.getClock()};
  w.test_net = r.getTestNet();
  if (w.test_net < -1 || w.test_net >= static_cast<int>(max_test_nets)) {
    throw bad_frame("worker_report", "test net", std::to_string(w.test_net),
                    "-1 to " + std::to_string(max_test_nets - 1));
  }
  w.passes = r.getPasses();
  const auto sums = r.getSums();
  at_most("worker_report", "number of sums", sums.size(), max_report_values);
  w.sums.reserve(sums.size());
  for (const double sum : sums) w.sums.push_back(sum);
  w.images = r.getImages();
  w.communication_ns = r.getCommunicationNs();
  w.exposed_ns = r.getExposedNs();
  return w;
}

frame_header read(wire::Frame::Reader frame) {
  switch (frame.which()) {
    case wire::Frame::HEARTBEAT:
      return frames::heartbeat{};
    case wire::Frame::VIEW:
      return read(frame.getView());
    case wire::Frame::MEMBER_READY:
      return read(frame.getMemberReady());
    case wire::Frame::START_TRAINING:
      return frames::start_training{};
    case wire::Frame::PUSH_GRADIENT: {
      const auto r = frame.getPushGradient();
      return frames::push_gradient{chunk_id{r.getChunk()}, clock_id{r.getClock()}, r.getNothing(),
                                   read(r.getStep(), "push_gradient")};
    }
    case wire::Frame::FRESH_PARAMETERS: {
      const auto r = frame.getFreshParameters();
      return frames::fresh_parameters{chunk_id{r.getChunk()}, version_id{r.getVersion()},
                                      r.getNothing(), format_of("fresh_parameters", r.getFormat())};
    }
    case wire::Frame::SUMMED_GRADIENT: {
      const auto r = frame.getSummedGradient();
      return frames::summed_gradient{
          chunk_id{r.getChunk()}, clock_id{r.getClock()}, r.getRate(),
          r.getDecay(),           r.getScale(),           r.getChecksum()};
    }
    case wire::Frame::INSTALL_HISTORY: {
      const auto r = frame.getInstallHistory();
      return frames::install_history{chunk_id{r.getChunk()}, r.getSlot(), r.getFirst()};
    }
    case wire::Frame::SHARED_STATE: {
      const auto r = frame.getSharedState();
      return frames::shared_state{r.getIndex(), r.getFirst()};
    }
    case wire::Frame::GATHER_HISTORY:
      return frames::gather_history{version_id{frame.getGatherHistory().getVersion()}};
    case wire::Frame::HISTORY: {
      const auto r = frame.getHistory();
      return frames::history{chunk_id{r.getChunk()}, r.getSlot(), version_id{r.getVersion()}};
    }
    case wire::Frame::WORKER_REPORT:
      return read(frame.getWorkerReport());
    case wire::Frame::STOP_REQUESTED:
      return frames::stop_requested{
          text("stop_requested", "reason", frame.getStopRequested().getReason())};
    case wire::Frame::SNAPSHOT_REQUESTED:
      return frames::snapshot_requested{};
    case wire::Frame::STOP_AFTER: {
      const auto r = frame.getStopAfter();
      return frames::stop_after{version_id{r.getVersion()},
                                text("stop_after", "reason", r.getReason())};
    }
    case wire::Frame::WORKER_DONE: {
      const auto r = frame.getWorkerDone();
      return frames::worker_done{version_id{r.getVersion()}};
    }
    case wire::Frame::GRADIENT_SQUARES:
      return frames::gradient_squares{clock_id{frame.getGradientSquares().getClock()}};
    case wire::Frame::FACTORS: {
      const auto r = frame.getFactors();
      return frames::factors{layer_id{r.getLayer()}, clock_id{r.getClock()}, r.getRows(),
                             r.getFirst(), read(r.getStep(), "factors")};
    }
    case wire::Frame::PROBE:
      return frames::probe{frame.getProbe().getRound(), frame.getProbe().getLast()};
    case wire::Frame::PROBE_HEARD:
      return frames::probe_heard{frame.getProbeHeard().getRound()};
    case wire::Frame::WATCH: {
      const auto r = frame.getWatch();
      if (r.getIntervalMs() < min_report_ms || r.getIntervalMs() > max_report_ms)
        throw bad_frame("watch", "interval in ms", std::to_string(r.getIntervalMs()),
                        std::to_string(min_report_ms) + " to " + std::to_string(max_report_ms));
      return frames::watch{r.getSentNs(), r.getIntervalMs()};
    }
    case wire::Frame::REPORT:
      return frames::report{};
    case wire::Frame::HOLD_TRAINING:
      return frames::hold_training{};
    case wire::Frame::WORKER_PAUSED: {
      const auto r = frame.getWorkerPaused();
      return frames::worker_paused{clock_id{r.getClock()}, r.getDrained()};
    }
    case wire::Frame::DRAIN:
      return frames::drain{clock_id{frame.getDrain().getClock()}};
    case wire::Frame::NEXT_VIEW:
      return read(frame.getNextView());
    case wire::Frame::JOIN_READY:
      return frames::join_ready{read_replicas("join_ready", frame.getJoinReady().getReplicas())};
    case wire::Frame::LEAVE_WANTED:
      return frames::leave_wanted{
          text("leave_wanted", "reason", frame.getLeaveWanted().getReason())};
    case wire::Frame::SUSPECT: {
      const auto r = frame.getSuspect();
      return frames::suspect{seat_id{r.getSeat()}, text("suspect", "reason", r.getReason())};
    }
    case wire::Frame::VIEW_PREPARE: {
      const auto r = frame.getViewPrepare();
      return frames::view_prepare{r.getEpoch(), read(r.getNumber())};
    }
    case wire::Frame::VIEW_PROMISE:
      return read(frame.getViewPromise());
    case wire::Frame::VIEW_ACCEPT: {
      const auto r = frame.getViewAccept();
      return frames::view_accept{r.getEpoch(), read(r.getNumber()), read(r.getValue())};
    }
    case wire::Frame::VIEW_ACCEPTED: {
      const auto r = frame.getViewAccepted();
      return frames::view_accepted{r.getEpoch(), read(r.getNumber()), read(r.getPromised())};
    }
    case wire::Frame::SEND_RATE:
      return read(frame.getSendRate());
    case wire::Frame::TIME_NET: {
      const auto r = frame.getTimeNet();
      return frames::time_net{blob(r.getSolver()), r.getSeed(), r.getMeasure()};
    }
    case wire::Frame::GATHERING: {
      const auto r = frame.getGathering();
      return frames::gathering{r.getThere(), r.getWanted()};
    }
    case wire::Frame::WORKER_LEFT: {
      const auto r = frame.getWorkerLeft();
      return frames::worker_left{seat_id{r.getLeft()}, version_id{r.getVersion()}};
    }
    case wire::Frame::FACTOR_OFFER:
      return frames::factor_offer{read_rows("factor_offer", frame.getFactorOffer().getRows())};
    case wire::Frame::NET_TIMED:
      return read(frame.getNetTimed());
    case wire::Frame::GOODBYE: {
      const auto r = frame.getGoodbye();
      at_most("goodbye", "cause", r.getCause(), 3);
      return frames::goodbye{text("goodbye", "reason", r.getReason()),
                             frames::goodbye::cause{r.getCause()}};
    }
  }
  throw bad_frame("frame", "kind", std::to_string(static_cast<unsigned>(frame.which())),
                  "at most " + std::to_string(std::variant_size_v<frame_header> - 1) +
                      " (the peer may be a newer build)");
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
