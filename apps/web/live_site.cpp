#include "apps/web/live_site.hpp"

#include "actors/telemetry/living_graph.hpp"
#include "apps/web/assets.hpp"
#include "apps/web/view_json.hpp"

#include <unistd.h>

namespace poseidon::web {

namespace {

constexpr auto json = "application/json";
constexpr std::size_t spans_a_tick = 4000;
// One in so many ticks: the trace's lanes are emptied, and a silent peer is named before its link gives it up.
constexpr std::size_t samples_without_reader = 2;

std::string event(const char* name, const std::string& data) {
  std::string out = std::string("event: ") + name + "\n";
  // A line feed would end the field; JSON has none inside its texts.
  out += "data: ";
  for (const char c : data)
    if (c != '\n') out += c;
  return out + "\n\n";
}

class live_feed : public feed {
 public:
  live_feed(std::shared_ptr<cluster_view> view, std::uint32_t worker)
      : view_(std::move(view)), worker_(worker) {}

  std::string next() override {
    auto out = event("tick", tick_json(*view_, worker_, since_));
    if (const auto spans = spans_json(*view_, worker_, spans_, spans_a_tick); !spans.empty())
      out += event("spans", spans);
    if (const auto more = view_->history().json(history_); !more.empty())
      out += event("history", more);
    return out;
  }

 private:
  std::shared_ptr<cluster_view> view_;
  std::uint32_t worker_;
  std::uint64_t since_ = 0;
  span_place spans_;
  run_history::place history_;
};

response text(int status, std::string body) {
  return {status, "text/plain; charset=utf-8", std::move(body), ""};
}

}  // namespace

live_site::live_site(std::shared_ptr<cluster_view> view, std::string token)
    : view_(std::move(view)), gate_(std::move(token)) {}

void live_site::tick(std::size_t streams) {
  view_->watchers(streams);
  if (streams == 0 && ticks_++ % samples_without_reader != 0) return;
  view_->sample();
  doctor_.look(*view_, now_ns());
}

std::uint32_t live_site::worker_of(const request& r) const {
  const auto self = view_->read([](const auto& s) { return s.facts ? s.facts->self : 0; });
  return static_cast<std::uint32_t>(r.number("node", self));
}

site::answer live_site::get(const request& r) {
  if (auto refused = gate_.refusal(r)) return {*std::move(refused), {}};
  if (r.path == "/events")
    return {{200, "text/event-stream", "", ""}, std::make_unique<live_feed>(view_, worker_of(r))};
  if (r.path == "/healthz") return {{200, json, health_json(*view_), ""}, {}};
  if (r.path == "/api/status") {
    view_->sample();
    return {text(200, status_text(*view_)), {}};
  }
  if (r.path == "/api/status.json") {
    view_->sample();
    return {{200, json, status_json(*view_), ""}, {}};
  }
  if (r.path == "/metrics")
    return {{200, "text/plain; version=0.0.4; charset=utf-8", prometheus_text(*view_), ""}, {}};
  if (r.path == "/api/graph") {
    view_->sample();
    return {{200, json, graph_json(*view_, worker_of(r)), ""}, {}};
  }
  if (r.path == "/api/history") {
    run_history::place from;
    const auto all = view_->history().json(from);
    return {{200, json, all.empty() ? "{\"points\":[],\"tests\":[],\"lines\":[]}" : all, ""}, {}};
  }
  if (r.path == "/api/recording")
    return {{200, json, "null", ""}, {}};  // that would be a finished run
  if (r.path == "/api/csv")
    return {{200, "text/csv; charset=utf-8", view_->history().csv(),
             "Content-Disposition: attachment; filename=\"poseidon.csv\"\r\n"},
            {}};
  if (r.path == "/api/trace") {
    view_->sample();
    return {{200, json, chrome_trace_json(*view_, r.number("iters", 0)),
             "Content-Disposition: attachment; filename=\"poseidon-trace.json\"\r\n"},
            {}};
  }
  if (r.path == "/api/dot") {
    const auto worker = worker_of(r);
    view_->sample();
    const auto dot = view_->read([&](const cluster_view::state& s) {
      const auto living = living_graph_of(s, worker);
      return living.graph.actors.empty() ? std::string() : to_dot(living.graph);
    });
    if (dot.empty()) return {text(404, "this worker's actors are not known yet\n"), {}};
    return {{200, "text/vnd.graphviz; charset=utf-8", dot, ""}, {}};
  }
  return {page_file(r.path), {}};
}

response page_file(const std::string& path) {
  const auto* a = find_asset(path == "/" ? "/index.html" : path);
  if (a == nullptr) return text(404, "there is nothing here\n");
  return {200, std::string(a->type), std::string(a->bytes), ""};
}

host_rule hosts_of(const host_port& at) {
  host_rule hosts;
  hosts.loopback_only = is_loopback(at);
  if (!is_any_address(at)) hosts.names.push_back(at.host);
  char name[256] = {};
  if (!hosts.loopback_only && gethostname(name, sizeof name - 1) == 0)
    hosts.names.emplace_back(name);
  return hosts;
}

std::unique_ptr<server> serve_live(const host_port& at, const std::string& token,
                                   std::shared_ptr<cluster_view> view) {
  server_options o;
  o.at = at;
  o.hosts = hosts_of(at);
  return std::make_unique<server>(std::move(o),
                                  std::make_shared<live_site>(std::move(view), token));
}

}  // namespace poseidon::web
