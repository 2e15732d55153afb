// messages/wire/encode.cpp - frames to Cap'n Proto: every kind is written here, and nowhere else.
#include "messages/overloaded.hpp"
#include "messages/wire/codec.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/io.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "wire.capnp.h"

namespace poseidon {
namespace {

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

void write(wire::StepMark::Builder w, const step_mark& m) {
  w.setRate(m.rate);
  w.setDigest(m.digest);
  w.setWire(static_cast<std::uint8_t>(m.wire));
}

void write(capnp::List<wire::Member>::Builder w, const std::vector<frames::member>& members) {
  for (unsigned i = 0; i < w.size(); ++i) {
    w[i].setSeat(value(members[i].seat));
    w[i].setAddress(text_of(members[i].address));
    w[i].setFingerprint(text_of(members[i].fingerprint));
  }
}

template <class Int>
void write(typename capnp::List<Int>::Builder w, const std::vector<Int>& numbers) {
  for (unsigned i = 0; i < w.size(); ++i) w.set(i, numbers[i]);
}

void write(capnp::List<wire::Share>::Builder w, const std::vector<frames::share>& shares) {
  for (unsigned i = 0; i < w.size(); ++i) {
    w[i].setSamples(shares[i].samples);
    w[i].setReplicas(shares[i].replicas);
  }
}

void write(capnp::List<std::uint32_t>::Builder w, const std::vector<seat_id>& seats) {
  for (unsigned i = 0; i < w.size(); ++i) w.set(i, value(seats[i]));
}

void write(wire::Ballot::Builder w, const frames::ballot& b) {
  w.setRound(b.round);
  w.setSeat(value(b.seat));
}

void write(wire::NextView::Builder w, const frames::next_view& v) {
  w.setEpoch(v.epoch);
  write(w.initNodes(static_cast<unsigned>(v.members.size())), v.members);
  write(w.initRoutes(static_cast<unsigned>(v.routes.size())), v.routes);
  write(w.initFactorRows(static_cast<unsigned>(v.factor_rows.size())), v.factor_rows);
  write(w.initShares(static_cast<unsigned>(v.shares.size())), v.shares);
  w.setWhy(text_of(v.why));
  w.setFirstClock(value(v.first_clock));
  write(w.initLost(static_cast<unsigned>(v.lost.size())), v.lost);
  w.setAllHaveValues(v.all_have_values);
  write(w.initWitnesses(static_cast<unsigned>(v.witnesses.size())), v.witnesses);
}

wire::ViewBallot::Builder write(wire::ViewBallot::Builder w, std::uint64_t epoch,
                                const frames::ballot& number, const frames::ballot& promised = {}) {
  w.setEpoch(epoch);
  write(w.initNumber(), number);
  write(w.initPromised(), promised);
  return w;
}

void write(wire::ViewPromise::Builder w, const frames::view_promise& p) {
  write(w.initBallot(), p.epoch, p.number, p.promised);
  if (p.accepted.round > 0)
    write(write(w.initAccepted(), p.epoch, p.accepted).initValue(), p.value);
  w.setWhole(p.whole);
  w.setVersion(value(p.version));
  w.setDrained(p.drained);
  write(w.initHears(static_cast<unsigned>(p.hears.size())), p.hears);
  write(w.initDead(static_cast<unsigned>(p.dead.size())), p.dead);
}

void write(wire::Digest::Builder w, const frames::byte_digest& d) {
  w.setHigh(d.high);
  w.setLow(d.low);
}

unsigned bytes_for(const std::vector<bool>& bits) {
  return static_cast<unsigned>((bits.size() + 7) / 8);
}

void write(capnp::Data::Builder w, const std::vector<bool>& bits) {
  for (std::size_t i = 0; i < bits.size(); ++i)
    if (bits[i]) w[i / 8] = static_cast<kj::byte>(w[i / 8] | 1u << i % 8);
}

void write(wire::View::Builder w, const frames::view& v) {
  w.setEpoch(v.epoch);
  w.setYou(value(v.you));
  write(w.initNodes(static_cast<unsigned>(v.members.size())), v.members);
  write(w.initWitnesses(static_cast<unsigned>(v.witnesses.size())), v.witnesses);
  w.setProspect(v.prospect);
  write(w.initKinds(static_cast<unsigned>(v.kinds.size())), v.kinds);
  write(w.initBefore().initSeats(static_cast<unsigned>(v.before.seats.size())), v.before.seats);
  write(w.getBefore().initRoutes(static_cast<unsigned>(v.before.routes.size())), v.before.routes);
  w.setSolver(bytes_of(v.solver));
  w.setSeed(v.seed);
  w.setRun(v.run);
  w.setFirstClock(value(v.first_clock));
  w.setFirstSample(v.first_sample);
  w.setTestPhases(v.test_phases);
  write(w.initRoutes(static_cast<unsigned>(v.routes.size())), v.routes);
  auto formats = w.initWire(static_cast<unsigned>(v.wire.size()));
  for (unsigned i = 0; i < formats.size(); ++i) formats.set(i, v.wire[i]);
  w.setWatched(v.watched);
  w.setRoutesFollowLinks(v.routes_follow_links);
  auto reasons = w.initReasons(static_cast<unsigned>(v.reasons.size()));
  for (unsigned i = 0; i < reasons.size(); ++i) reasons.set(i, text_of(v.reasons[i]));
  auto sets = w.initDataSets(static_cast<unsigned>(v.data_sets.size()));
  for (unsigned i = 0; i < sets.size(); ++i) {
    sets[i].setNet(v.data_sets[i].net);
    sets[i].setLayer(text_of(v.data_sets[i].layer));
    sets[i].setSample(text_of(v.data_sets[i].sample));
    sets[i].setRecords(v.data_sets[i].records);
  }
  w.setReplicas(v.replicas);
  w.setSurvive(v.survive);
  w.setZeroesLostState(v.zeroes_lost_state);
  w.setStateZeroedAt(v.state_zeroed_at);
  w.setOptimizer(static_cast<std::uint8_t>(v.optimizer));
  auto parameters = w.initParameters(static_cast<unsigned>(v.parameters.size()));
  for (unsigned i = 0; i < parameters.size(); ++i) {
    parameters[i].setName(text_of(v.parameters[i].name));
    const auto& from = v.parameters[i].dims;
    auto dims = parameters[i].initDims(static_cast<unsigned>(from.size()));
    for (unsigned d = 0; d < dims.size(); ++d) dims.set(d, static_cast<std::uint32_t>(from[d]));
    parameters[i].setGiven(v.parameters[i].given);
    write(parameters[i].initFirst(), v.parameters[i].first);
  }
  auto shared = w.initShared(static_cast<unsigned>(v.shared.size()));
  for (unsigned i = 0; i < shared.size(); ++i) {
    shared[i].setName(text_of(v.shared[i].name));
    shared[i].setKind(text_of(v.shared[i].kind));
    shared[i].setSize(v.shared[i].size);
    write(shared[i].initDigest(), v.shared[i].digest);
  }
  write(w.initShares(static_cast<unsigned>(v.shares.size())), v.shares);
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
  std::visit(
      overloaded{
          [&](const frames::heartbeat&) { frame.setHeartbeat(); },
          [&](const frames::view& f) { write(frame.initView(), f); },
          [&](const frames::member_ready& f) {
            auto w = frame.initMemberReady();
            w.setReplicas(f.replicas);
            w.setEpoch(f.epoch);
            if (!f.has_parameters.empty())
              write(w.initHasParameters(bytes_for(f.has_parameters)), f.has_parameters);
            if (!f.has_shared.empty())
              write(w.initHasShared(bytes_for(f.has_shared)), f.has_shared);
          },
          [&](const frames::start_training&) { frame.setStartTraining(); },
          [&](const frames::push_gradient& f) {
            auto w = frame.initPushGradient();
            w.setChunk(value(f.chunk));
            w.setClock(value(f.clock));
            w.setNothing(f.nothing);
            if (f.step != step_mark{}) write(w.initStep(), f.step);
          },
          [&](const frames::fresh_parameters& f) {
            auto w = frame.initFreshParameters();
            w.setChunk(value(f.chunk));
            w.setVersion(value(f.version));
            w.setNothing(f.nothing);
            w.setFormat(static_cast<std::uint8_t>(f.format));
          },
          [&](const frames::summed_gradient& f) {
            auto w = frame.initSummedGradient();
            w.setChunk(value(f.chunk));
            w.setClock(value(f.clock));
            w.setRate(f.rate);
            w.setDecay(f.decay);
            w.setScale(f.scale);
            w.setChecksum(f.checksum);
          },
          [&](const frames::install_history& f) {
            auto w = frame.initInstallHistory();
            w.setChunk(value(f.chunk));
            w.setSlot(f.slot);
            w.setFirst(f.first);
          },
          [&](const frames::shared_state& f) {
            auto w = frame.initSharedState();
            w.setIndex(f.index);
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
          [&](const frames::snapshot_requested&) { frame.setSnapshotRequested(); },
          [&](const frames::stop_after& f) {
            auto w = frame.initStopAfter();
            w.setVersion(value(f.version));
            write_reason(w, f.reason);
          },
          [&](const frames::goodbye& f) {
            auto w = frame.initGoodbye();
            write_reason(w, f.reason);
            w.setCause(static_cast<std::uint8_t>(f.of));
          },
          [&](const frames::worker_done& f) {
            frame.initWorkerDone().setVersion(value(f.version));
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
            if (f.step != step_mark{}) write(w.initStep(), f.step);
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
          [&](const frames::worker_paused& f) {
            auto w = frame.initWorkerPaused();
            w.setClock(value(f.clock));
            w.setDrained(f.drained);
          },
          [&](const frames::drain& f) { frame.initDrain().setClock(value(f.clock)); },
          [&](const frames::next_view& f) { write(frame.initNextView(), f); },
          [&](const frames::join_ready& f) { frame.initJoinReady().setReplicas(f.replicas); },
          [&](const frames::leave_wanted& f) { write_reason(frame.initLeaveWanted(), f.why); },
          [&](const frames::suspect& f) {
            auto w = frame.initSuspect();
            w.setSeat(value(f.seat));
            write_reason(w, f.why);
          },
          [&](const frames::view_prepare& f) { write(frame.initViewPrepare(), f.epoch, f.number); },
          [&](const frames::view_promise& f) { write(frame.initViewPromise(), f); },
          [&](const frames::view_accept& f) {
            write(write(frame.initViewAccept(), f.epoch, f.number).initValue(), f.value);
          },
          [&](const frames::view_accepted& f) {
            write(frame.initViewAccepted(), f.epoch, f.number, f.promised);
          },
          [&](const frames::factor_offer& f) {
            write(frame.initFactorOffer().initRows(static_cast<unsigned>(f.rows.size())), f.rows);
          },
          [&](const frames::send_rate& f) {
            auto w = frame.initSendRate();
            w.setMbitS(f.mbit_s);
            w.setProbed(f.probed);
          },
          [&](const frames::time_net& f) {
            auto w = frame.initTimeNet();
            w.setSolver(bytes_of(f.solver));
            w.setSeed(f.seed);
            w.setMeasure(f.measure);
          },
          [&](const frames::gathering& f) {
            auto w = frame.initGathering();
            w.setThere(f.there);
            w.setWanted(f.wanted);
          },
          [&](const frames::worker_left& f) {
            auto w = frame.initWorkerLeft();
            w.setLeft(value(f.left));
            w.setVersion(value(f.version));
          },
          [&](const frames::net_timed& f) {
            auto w = frame.initNetTimed();
            w.setReplicas(f.replicas);
            w.setSamplesPerSecond(f.samples_s);
          },
      },
      h);
}

}  // namespace

void encode_header(const frame_header& h, const envelope& e, std::vector<std::byte>& out) {
  std::array<capnp::word, 128> first_segment{};  // enough for all but a view: no allocation
  capnp::MallocMessageBuilder message(kj::arrayPtr(first_segment.data(), first_segment.size()));
  auto frame = message.initRoot<wire::Frame>();
  frame.setFrom(value(e.from.seat));
  frame.setEpoch(e.from.epoch);
  frame.setPayloadBytes(static_cast<std::uint32_t>(e.payload_bytes));
  frame.setPayloadChecksum(e.payload_checksum);
  write(frame, h);
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
