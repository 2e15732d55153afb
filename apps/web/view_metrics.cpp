// apps/web/view_metrics.cpp - a cluster_view in Prometheus' text format.
#include "apps/web/lag.hpp"
#include "apps/web/view_json.hpp"

#include <cmath>
#include <cstdio>
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
    out_ += name_ + (labels.empty() ? "" : "{" + labels + "}") + " " + value + "\n";
  }
  void sample(const std::string& labels, std::uint64_t value) {
    sample(labels, std::to_string(value));
  }

 private:
  std::string& out_;
  std::string name_;
};

/// As Prometheus writes numbers: NaN, +Inf and -Inf are values.
std::string number_text(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v < 0 ? "-Inf" : "+Inf";
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}

/// What the whole run has found: none of it before the first display interval, or test.
void add_values(std::string& out, const run_history::values& v) {
  if (const auto& p = v.training) {
    const auto one = [&](const char* name, const char* help, double value) {
      metric(out, name, "gauge", help).sample("", number_text(value));
    };
    one("poseidon_loss", "Smoothed over average_loss iterations.", p->loss);
    one("poseidon_learning_rate", "Of the newest display interval.", p->learning_rate);
    one("poseidon_images_per_second", "Of all workers, without test phases.", p->images_s);
    if (p->hidden >= 0)
      one("poseidon_hidden_ratio", "Share of the communication for which no stream waited.",
          p->hidden);
    metric outputs(out, "poseidon_output", "gauge", "Of the train net, mean over all workers.");
    for (std::size_t o = 0; o < p->outputs.size(); ++o)
      outputs.sample("output=" + label_value(v.names->at(o)), number_text(p->outputs[o]));
  }
  if (v.tests.empty()) return;
  metric tests(out, "poseidon_test_output", "gauge", "Mean of the newest test phase.");
  for (const auto& [net, test] : v.tests)
    for (std::size_t o = 0; o < test.means.size(); ++o)
      tests.sample("net=\"" + std::to_string(net) + "\",output=" + label_value(test.names.at(o)),
                   number_text(test.means[o]));
}

std::string of_worker(std::uint32_t id) {
  return "worker=\"" + std::to_string(id) + "\"";
}

}  // namespace

// Samples are by class of actor and message, not by actor: a deep net has hundreds, and each sample is a series.
std::string prometheus_text(const cluster_view& view) {
  std::string out;
  add_values(out, view.history().newest_values());
  return view.read([&](const cluster_view::state& s) {
    metric clock(out, "poseidon_clock", "gauge", "Clock of the newest forward kernel.");
    for (const auto& [id, w] : s.workers) clock.sample(of_worker(id), shown_clock(s, w));
    metric up(out, "poseidon_up", "gauge", "1 while the worker is part of the run.");
    for (const auto& [id, w] : s.workers)
      up.sample(of_worker(id),
                std::uint64_t{w.contact.heard_ns != 0 && !w.contact.lost && !s.ended()});
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
