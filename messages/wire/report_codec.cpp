// messages/wire/report_codec.cpp - node_report to packed Cap'n Proto and back.
#include "messages/node_report.hpp"
#include "messages/wire/codec.hpp"

#include <capnp/message.h>
#include <capnp/serialize-packed.h>
#include <kj/io.h>

#include <stdexcept>

#include "wire.capnp.h"

namespace poseidon {

namespace {

/// The largest report, unpacked: zeros, of which there are many, take no room in the packed form.
constexpr std::size_t max_words = (std::size_t{16} << 20) / sizeof(capnp::word);

/// `fill(builder, value)` for each of `from`.
template <class List, class T, class F>
void write_list(List list, const std::vector<T>& from, F fill) {
  for (unsigned i = 0; i < list.size(); ++i) fill(list[i], from[i]);
}

unsigned size_of(std::size_t n) {
  return static_cast<unsigned>(n);
}

void write(wire::Report::Builder w, const node_report& r) {
  w.setSentNs(r.sent_ns);
  w.setAskedNs(r.asked_ns);
  w.setHeardNs(r.heard_ns);
  w.setReplicas(r.replicas);
  w.setFirstName(r.first_name);
  w.setFirstActor(r.first_actor);
  w.setFirstEdge(r.first_edge);
  w.setFirstLane(r.first_lane);
  auto names = w.initNames(size_of(r.names.size()));
  for (unsigned i = 0; i < names.size(); ++i) names.set(i, r.names[i].c_str());
  write_list(w.initActors(size_of(r.actors.size())), r.actors, [](auto to, const auto& a) {
    to.setName(a.name);
    to.setType(a.type);
  });
  write_list(w.initEdges(size_of(r.edges.size())), r.edges, [](auto to, const auto& e) {
    to.setFrom(e.from);
    to.setTo(e.to);
    to.setMessage(e.message);
  });
  auto lanes = w.initLanes(size_of(r.lanes.size()));
  for (unsigned i = 0; i < lanes.size(); ++i) lanes.set(i, r.lanes[i]);
  write_list(w.initHandled(size_of(r.handled_by.size())), r.handled_by, [](auto to, const auto& h) {
    to.setActor(h.actor);
    to.setMessages(h.messages);
  });
  auto ended = w.initEnded(size_of(r.ended.size()));
  for (unsigned i = 0; i < ended.size(); ++i) ended.set(i, r.ended[i]);
  write_list(w.initRenamed(size_of(r.renamed.size())), r.renamed, [](auto to, const auto& n) {
    to.setActor(n.actor);
    to.setName(n.name);
  });
  write_list(w.initCounts(size_of(r.counts.size())), r.counts, [](auto to, const auto& c) {
    to.setEdge(c.edge);
    to.setMessages(c.messages);
    to.setBytes(c.bytes);
  });
  write_list(w.initSpans(size_of(r.spans.size())), r.spans, [](auto to, const auto& s) {
    to.setLane(s.lane);
    to.setName(s.name);
    to.setPhase(s.phase);
    to.setChunk(s.chunk);
    to.setBeginNs(s.begin_ns);
    to.setEndNs(s.end_ns);
    to.setClock(s.clock);
    to.setBytes(s.bytes);
  });
  w.setSpansLeftOut(r.spans_left_out);
  write_list(w.initLinks(size_of(r.links.size())), r.links, [](auto to, const auto& l) {
    to.setPeer(l.peer);
    to.setBytesOut(l.bytes_out);
    to.setBytesIn(l.bytes_in);
    to.setFramesOut(l.frames_out);
    to.setFramesIn(l.frames_in);
  });
}

node_report read(wire::Report::Reader w) {
  node_report r;
  r.sent_ns = w.getSentNs();
  r.asked_ns = w.getAskedNs();
  r.heard_ns = w.getHeardNs();
  r.replicas = w.getReplicas();
  r.first_name = w.getFirstName();
  r.first_actor = w.getFirstActor();
  r.first_edge = w.getFirstEdge();
  r.first_lane = w.getFirstLane();
  for (const auto name : w.getNames()) {
    if (name.size() > max_text_bytes)
      throw bad_frame("report", "length of a name", std::to_string(name.size()),
                      "at most " + std::to_string(max_text_bytes));
    r.names.emplace_back(name.cStr(), name.size());
  }
  for (const auto a : w.getActors()) r.actors.push_back({a.getName(), a.getType()});
  for (const auto e : w.getEdges()) r.edges.push_back({e.getFrom(), e.getTo(), e.getMessage()});
  for (const auto l : w.getLanes()) r.lanes.push_back(l);
  for (const auto h : w.getHandled()) r.handled_by.push_back({h.getActor(), h.getMessages()});
  for (const auto a : w.getEnded()) r.ended.push_back(a);
  for (const auto n : w.getRenamed()) r.renamed.push_back({n.getActor(), n.getName()});
  for (const auto c : w.getCounts())
    r.counts.push_back({c.getEdge(), c.getMessages(), c.getBytes()});
  if (w.getSpans().size() > max_report_spans)
    throw bad_frame("report", "number of spans", std::to_string(w.getSpans().size()),
                    "at most " + std::to_string(max_report_spans));
  for (const auto s : w.getSpans())
    r.spans.push_back({s.getLane(), s.getName(), s.getPhase(), s.getChunk(), s.getBeginNs(),
                       s.getEndNs(), s.getClock(), s.getBytes()});
  r.spans_left_out = w.getSpansLeftOut();
  for (const auto l : w.getLinks())
    r.links.push_back(
        {l.getPeer(), l.getBytesOut(), l.getBytesIn(), l.getFramesOut(), l.getFramesIn()});
  return r;
}

}  // namespace

std::shared_ptr<const std::vector<std::byte>> encode_report(const node_report& r) {
  capnp::MallocMessageBuilder message;
  write(message.initRoot<wire::Report>(), r);
  kj::VectorOutputStream stream;
  capnp::writePackedMessage(stream, message);
  const auto packed = stream.getArray();
  if (packed.size() > max_report_bytes)
    throw std::length_error("a report of " + std::to_string(packed.size()) + " bytes; at most " +
                            std::to_string(max_report_bytes) + " are sent");
  const auto* begin = reinterpret_cast<const std::byte*>(packed.begin());
  return std::make_shared<const std::vector<std::byte>>(begin, begin + packed.size());
}

node_report decode_report(std::span<const std::byte> bytes) {
  if (bytes.size() > max_report_bytes)
    throw bad_frame("report", "payload size", std::to_string(bytes.size()),
                    "at most " + std::to_string(max_report_bytes));
  try {
    capnp::ReaderOptions bounds;
    bounds.traversalLimitInWords = max_words;
    bounds.nestingLimit = 8;
    kj::ArrayInputStream stream({reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()});
    capnp::PackedMessageReader message(stream, bounds);
    return read(message.getRoot<wire::Report>());
  } catch (const kj::Exception& e) {
    throw bad_frame("report", "payload", e.getDescription().cStr(), "a packed Report");
  }
}

}  // namespace poseidon
