// Long because every kind of frame is written and read here, and nowhere else.
#include "messages/codec.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>
#include <kj/io.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "wire.capnp.h"

namespace poseidon {
namespace {

constexpr std::byte magic{0xb5};

template <class... Fs>
struct overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
overloaded(Fs...) -> overloaded<Fs...>;

kj::ArrayPtr<const kj::byte> bytes_of(const std::string& s) {
  return {reinterpret_cast<const kj::byte*>(s.data()), s.size()};
}

capnp::Text::Reader text_of(const std::string& s) {
  return {s.c_str(), s.size()};
}

// Our own reasons can be long (a chain of causes); their start says what happened.
template <class Builder>
void write_reason(Builder w, const std::string& text) {
  const auto size = std::min(text.size(), max_text_bytes);
  std::memcpy(w.initReason(static_cast<unsigned>(size)).begin(), text.data(), size);
}

void write(wire::View::Builder w, const frames::view& v) {
  w.setEpoch(v.epoch);
  w.setYou(value(v.you));
  auto members = w.initMembers(static_cast<unsigned>(v.members.size()));
  for (unsigned i = 0; i < members.size(); ++i) members.set(i, text_of(v.members[i]));
  w.setSolver(bytes_of(v.solver));
  w.setSeed(v.seed);
  w.setFirstClock(value(v.first_clock));
  w.setFirstSample(v.first_sample);
  w.setTestPhases(v.test_phases);
  auto routes = w.initRoutes(static_cast<unsigned>(v.routes.size()));
  for (unsigned i = 0; i < routes.size(); ++i) routes.set(i, v.routes[i]);
  auto formats = w.initWire(static_cast<unsigned>(v.wire.size()));
  for (unsigned i = 0; i < formats.size(); ++i) formats.set(i, v.wire[i]);
  w.setWatched(v.watched);
}

void write(wire::WorkerReport::Builder w, const frames::worker_report& r) {
  w.setClock(value(r.clock));
  w.setTestNet(r.test_net);
  w.setPasses(r.passes);
  auto sums = w.initSums(static_cast<unsigned>(r.sums.size()));
  for (unsigned i = 0; i < sums.size(); ++i) sums.set(i, r.sums[i]);
  w.setImages(r.images);
  w.setCommunicationNs(r.communication_ns);
  w.setExposedNs(r.exposed_ns);
}

void write(wire::Frame::Builder frame, const frame_header& h) {
  std::visit(overloaded{
                 [&](const frames::heartbeat&) { frame.setHeartbeat(); },
                 [&](const frames::view& f) { write(frame.initView(), f); },
                 [&](const frames::member_ready& f) {
                   frame.initMemberReady().setWorker(value(f.worker));
                 },
                 [&](const frames::start_training&) { frame.setStartTraining(); },
                 [&](const frames::push_gradient& f) {
                   auto w = frame.initPushGradient();
                   w.setChunk(value(f.chunk));
                   w.setClock(value(f.clock));
                 },
                 [&](const frames::fresh_parameters& f) {
                   auto w = frame.initFreshParameters();
                   w.setChunk(value(f.chunk));
                   w.setVersion(value(f.version));
                 },
                 [&](const frames::install_history& f) {
                   auto w = frame.initInstallHistory();
                   w.setChunk(value(f.chunk));
                   w.setSlot(f.slot);
                   w.setFirst(f.first);
                 },
                 [&](const frames::gather_history& f) {
                   frame.initGatherHistory().setVersion(value(f.version));
                 },
                 [&](const frames::history& f) {
                   auto w = frame.initHistory();
                   w.setChunk(value(f.chunk));
                   w.setSlot(f.slot);
                   w.setVersion(value(f.version));
                 },
                 [&](const frames::worker_report& f) { write(frame.initWorkerReport(), f); },
                 [&](const frames::stop_requested& f) {
                   write_reason(frame.initStopRequested(), f.reason);
                 },
                 [&](const frames::stop_after& f) {
                   auto w = frame.initStopAfter();
                   w.setClock(value(f.clock));
                   write_reason(w, f.reason);
                 },
                 [&](const frames::goodbye& f) { write_reason(frame.initGoodbye(), f.reason); },
                 [&](const frames::worker_done& f) {
                   auto w = frame.initWorkerDone();
                   w.setWorker(value(f.worker));
                   w.setVersion(value(f.version));
                 },
                 [&](const frames::gradient_squares& f) {
                   frame.initGradientSquares().setClock(value(f.clock));
                 },
                 [&](const frames::factors& f) {
                   auto w = frame.initFactors();
                   w.setLayer(value(f.layer));
                   w.setClock(value(f.clock));
                   w.setRows(f.rows);
                   w.setFirst(f.first);
                 },
                 [&](const frames::probe& f) {
                   auto w = frame.initProbe();
                   w.setRound(f.round);
                   w.setLast(f.last);
                 },
                 [&](const frames::probe_heard& f) { frame.initProbeHeard().setRound(f.round); },
                 [&](const frames::watch& f) {
                   auto w = frame.initWatch();
                   w.setSentNs(f.sent_ns);
                   w.setIntervalMs(f.interval_ms);
                 },
                 [&](const frames::report&) { frame.setReport(); },
                 [&](const frames::hold_training&) { frame.setHoldTraining(); },
                 [&](const frames::worker_stands& f) {
                   auto w = frame.initWorkerStands();
                   w.setWorker(value(f.worker));
                   w.setClock(value(f.clock));
                   w.setDrained(f.drained);
                 },
                 [&](const frames::change_routes& f) {
                   auto w = frame.initChangeRoutes();
                   w.setClock(value(f.clock));
                   auto routes = w.initRoutes(static_cast<unsigned>(f.routes.size()));
                   for (unsigned i = 0; i < routes.size(); ++i) routes.set(i, f.routes[i]);
                 },
                 [&](const frames::rebuild_graph&) { frame.setRebuildGraph(); },
                 [&](const frames::outflow& f) { frame.initOutflow().setMbitS(f.mbit_s); },
             },
             h);
}

// ---- reading: every size is compared before anything is copied

void at_most(std::string_view kind, std::string_view field, std::size_t got, std::size_t limit) {
  if (got > limit)
    throw bad_frame(kind, field, std::to_string(got), "at most " + std::to_string(limit));
}

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

frame_header read(wire::ChangeRoutes::Reader r) {
  frames::change_routes c{clock_id{r.getClock()}, read_routes("change_routes", r.getRoutes())};
  if (c.routes.empty())
    throw bad_frame("change_routes", "number of routes", "0", "that of the net's parameters");
  return c;
}

frame_header read(wire::Outflow::Reader r) {
  const auto rate = r.getMbitS();
  if (!std::isfinite(rate) || rate <= 0)
    throw bad_frame("outflow", "Mbit/s", std::to_string(rate), "a positive number");
  return frames::outflow{rate};
}

frame_header read(wire::View::Reader r) {
  frames::view v;
  v.epoch = r.getEpoch();
  v.you = worker_id{r.getYou()};
  const auto members = r.getMembers();
  at_most("view", "number of members", members.size(), max_members);
  if (r.getYou() >= members.size()) {
    throw bad_frame("view", "you", std::to_string(r.getYou()),
                    "less than the number of members, " + std::to_string(members.size()));
  }
  for (const auto m : members) v.members.push_back(text("view", "member", m));
  v.solver = blob(r.getSolver());
  v.seed = r.getSeed();
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
  return v;
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
      return frames::member_ready{worker_id{frame.getMemberReady().getWorker()}};
    case wire::Frame::START_TRAINING:
      return frames::start_training{};
    case wire::Frame::PUSH_GRADIENT: {
      const auto r = frame.getPushGradient();
      return frames::push_gradient{chunk_id{r.getChunk()}, clock_id{r.getClock()}};
    }
    case wire::Frame::FRESH_PARAMETERS: {
      const auto r = frame.getFreshParameters();
      return frames::fresh_parameters{chunk_id{r.getChunk()}, version_id{r.getVersion()}};
    }
    case wire::Frame::INSTALL_HISTORY: {
      const auto r = frame.getInstallHistory();
      return frames::install_history{chunk_id{r.getChunk()}, r.getSlot(), r.getFirst()};
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
    case wire::Frame::STOP_AFTER: {
      const auto r = frame.getStopAfter();
      return frames::stop_after{clock_id{r.getClock()},
                                text("stop_after", "reason", r.getReason())};
    }
    case wire::Frame::WORKER_DONE: {
      const auto r = frame.getWorkerDone();
      return frames::worker_done{worker_id{r.getWorker()}, version_id{r.getVersion()}};
    }
    case wire::Frame::GRADIENT_SQUARES:
      return frames::gradient_squares{clock_id{frame.getGradientSquares().getClock()}};
    case wire::Frame::FACTORS: {
      const auto r = frame.getFactors();
      return frames::factors{layer_id{r.getLayer()}, clock_id{r.getClock()}, r.getRows(),
                             r.getFirst()};
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
    case wire::Frame::WORKER_STANDS: {
      const auto r = frame.getWorkerStands();
      return frames::worker_stands{worker_id{r.getWorker()}, clock_id{r.getClock()},
                                   r.getDrained()};
    }
    case wire::Frame::CHANGE_ROUTES:
      return read(frame.getChangeRoutes());
    case wire::Frame::REBUILD_GRAPH:
      return frames::rebuild_graph{};
    case wire::Frame::OUTFLOW:
      return read(frame.getOutflow());
    case wire::Frame::GOODBYE:
      return frames::goodbye{text("goodbye", "reason", frame.getGoodbye().getReason())};
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
    decoded_header d{
        {worker_id{frame.getFrom()}, frame.getPayloadBytes(), frame.getPayloadChecksum()},
        read(frame)};
    const auto kind = kind_name(d.header);
    if (!std::holds_alternative<frames::view>(d.header))
      at_most(kind, "header size", words.size() * sizeof(capnp::word), max_header_bytes);
    at_most(kind, "payload size", d.payload_bytes, has_payload(d.header) ? max_payload_bytes : 0);
    return d;
  } catch (const kj::Exception& e) {
    throw bad_frame("frame", "header", e.getDescription().cStr(), "a Cap'n Proto Frame");
  }
}

}  // namespace

bad_frame::bad_frame(std::string_view kind_, std::string_view field_, std::string_view got_,
                     std::string_view wanted_)
    : std::runtime_error(std::string(kind_) + ": " + std::string(field_) + " is " +
                         std::string(got_) + ", expected " + std::string(wanted_)),
      kind(kind_),
      field(field_),
      got(got_),
      wanted(wanted_) {}

std::string_view kind_name(const frame_header& h) {
  static constexpr std::array<std::string_view, std::variant_size_v<frame_header>> names{
      "heartbeat",       "view",           "member_ready",
      "start_training",  "push_gradient",  "fresh_parameters",
      "install_history", "gather_history", "history",
      "worker_report",   "stop_requested", "stop_after",
      "goodbye",         "worker_done",    "gradient_squares",
      "factors",         "probe",          "probe_heard",
      "watch",           "report",         "hold_training",
      "worker_stands",   "change_routes",  "rebuild_graph",
      "outflow"};
  return names[h.index()];
}

bool has_payload(const frame_header& h) {
  return std::holds_alternative<frames::push_gradient>(h) ||
         std::holds_alternative<frames::fresh_parameters>(h) ||
         std::holds_alternative<frames::install_history>(h) ||
         std::holds_alternative<frames::history>(h) ||
         std::holds_alternative<frames::gradient_squares>(h) ||
         std::holds_alternative<frames::factors>(h) || std::holds_alternative<frames::probe>(h) ||
         std::holds_alternative<frames::report>(h);
}

std::array<std::byte, preamble_bytes> encode_preamble(const preamble& p) {
  std::array<std::byte, preamble_bytes> out{magic};
  for (std::size_t i = 0; i < 3; ++i)
    out[1 + i] = static_cast<std::byte>(p.header_words >> (8 * i));
  for (std::size_t i = 0; i < 4; ++i) out[4 + i] = static_cast<std::byte>(p.checksum >> (8 * i));
  return out;
}

preamble decode_preamble(std::span<const std::byte, preamble_bytes> bytes) {
  preamble p;
  if (bytes[0] != magic) {
    throw bad_frame("frame", "first byte", std::to_string(std::to_integer<unsigned>(bytes[0])),
                    std::to_string(std::to_integer<unsigned>(magic)));
  }
  for (std::size_t i = 0; i < 3; ++i)
    p.header_words |= std::to_integer<std::uint32_t>(bytes[1 + i]) << (8 * i);
  for (std::size_t i = 0; i < 4; ++i)
    p.checksum |= std::to_integer<std::uint32_t>(bytes[4 + i]) << (8 * i);
  at_most("frame", "header size", p.header_words * sizeof(capnp::word), max_view_bytes);
  return p;
}

void encode_header(const frame_header& h, const envelope& e, std::vector<std::byte>& out) {
  std::array<capnp::word, 128> first_segment{};  // enough for all but a view: no allocation
  capnp::MallocMessageBuilder message(kj::arrayPtr(first_segment.data(), first_segment.size()));
  auto frame = message.initRoot<wire::Frame>();
  frame.setFrom(value(e.from));
  frame.setPayloadBytes(static_cast<std::uint32_t>(e.payload_bytes));
  frame.setPayloadChecksum(e.payload_checksum);
  write(frame, h);
  const auto bytes = capnp::computeSerializedSizeInWords(message) * sizeof(capnp::word);
  const auto limit = std::holds_alternative<frames::view>(h) ? max_view_bytes : max_header_bytes;
  if (bytes > limit) {
    throw std::length_error(std::string(kind_name(h)) + " takes " + std::to_string(bytes) +
                            " bytes on the wire, a node reads at most " + std::to_string(limit) +
                            ". The solver and net files are too large to send.");
  }
  out.resize(bytes);
  kj::ArrayOutputStream stream({reinterpret_cast<kj::byte*>(out.data()), out.size()});
  capnp::writeMessage(stream, message);
}

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
