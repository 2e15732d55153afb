// apps/web/view_metrics.cpp - a cluster_view in Prometheus' text format.
#include "apps/web/view_json.hpp"

#include <map>

namespace poseidon {

namespace {

/// A label's value: backslash, quote and line feed are escaped.
std::string label_value(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

/// One metric: its head once, then its samples.
class metric {
 public:
  metric(std::string& out, std::string name, const char* type, const char* help)
      : out_(out), name_(std::move(name)) {
    out_ += "# HELP " + name_ + " " + help + "\n# TYPE " + name_ + " " + type + "\n";
  }
  void sample(const std::string& labels, const std::string& value) {
    out_ += name_ + "{" + labels + "} " + value + "\n";
  }
  void sample(const std::string& labels, std::uint64_t value) {
    sample(labels, std::to_string(value));
  }

 private:
  std::string& out_;
  std::string name_;
};

std::string of_worker(std::uint32_t id) {
  return "worker=\"" + std::to_string(id) + "\"";
}

}  // namespace

// Samples are by class of actor and message, not by actor: a deep net has hundreds, and each sample is a series.
std::string prometheus_text(const cluster_view& view) {
  return view.read([](const cluster_view::state& s) {
    std::string out;
    metric clock(out, "poseidon_clock", "gauge", "Clock of the newest forward kernel.");
    for (const auto& [id, w] : s.workers) clock.sample(of_worker(id), w.pace.clock);
    metric up(out, "poseidon_up", "gauge", "1 while the worker is part of the run.");
    for (const auto& [id, w] : s.workers)
      up.sample(of_worker(id),
                std::uint64_t{w.contact.heard_ns != 0 && !w.contact.lost && !s.ended});
    metric sent(out, "poseidon_link_sent_bytes_total", "counter", "Written to the socket.");
    for (const auto& [id, w] : s.workers)
      for (const auto& l : w.links)
        sent.sample(of_worker(id) + ",peer=\"" + std::to_string(l.peer) + "\"", l.bytes_out);
    metric received(out, "poseidon_link_received_bytes_total", "counter", "Read from the socket.");
    for (const auto& [id, w] : s.workers)
      for (const auto& l : w.links)
        received.sample(of_worker(id) + ",peer=\"" + std::to_string(l.peer) + "\"", l.bytes_in);
    struct sum {
      std::uint64_t messages = 0, bytes = 0;
    };
    std::map<std::string, sum> edges;
    std::map<std::string, std::uint64_t> waiting;
    for (const auto& [id, w] : s.workers) {
      for (const auto& e : w.graph.edges) {
        auto& to =
            edges[of_worker(id) + ",from=" + label_value(w.graph.actors[e.from].type) + ",to=" +
                  label_value(w.graph.actors[e.to].type) + ",message=" + label_value(e.message)];
        to.messages += e.messages;
        to.bytes += e.bytes;
      }
      for (const auto& a : w.graph.actors)
        if (!a.ended) waiting[of_worker(id) + ",actor=" + label_value(a.type)] += a.waiting();
    }
    metric messages(out, "poseidon_messages_total", "counter", "Sent between actors.");
    for (const auto& [labels, e] : edges) messages.sample(labels, e.messages);
    metric bytes(out, "poseidon_payload_bytes_total", "counter", "Payload of these messages.");
    for (const auto& [labels, e] : edges)
      if (e.bytes > 0) bytes.sample(labels, e.bytes);
    metric queue(out, "poseidon_mailbox_messages", "gauge", "Sent and not yet handled.");
    for (const auto& [labels, n] : waiting) queue.sample(labels, n);
    metric lag(out, "poseidon_clock_offset_seconds", "gauge",
               "The worker's monotonic clock minus this node's.");
    for (const auto& [id, w] : s.workers)
      if (w.contact.uncertain_ns >= 0)
        lag.sample(of_worker(id), std::to_string(static_cast<double>(w.contact.offset_ns) / 1e9));
    return out;
  });
}

}  // namespace poseidon
