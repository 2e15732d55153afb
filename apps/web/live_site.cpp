#include "apps/web/live_site.hpp"

#include "actors/telemetry/graph_text.hpp"
#include "actors/telemetry/living_graph.hpp"
#include "apps/web/assets.hpp"
#include "apps/web/view_json.hpp"
#include "models/json.hpp"

#include <algorithm>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace poseidon::web {

namespace {

constexpr auto json = "application/json";
constexpr std::size_t spans_a_tick = 4000;
// Without a reader one tick in this many takes a sample: it empties the trace's lanes, and the diagnosis names a silent
// peer before its link ends.
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
  live_feed(std::shared_ptr<cluster_view> view, std::uint32_t worker, std::int64_t began_ns)
      : view_(std::move(view)),
        worker_(worker),
        start_(event("start", json_object().put("began_us", began_ns / 1000).text())) {}

  std::string next() override {
    auto out = std::exchange(start_, {});
    out += event("tick", tick_json(*view_, worker_, since_));
    if (const auto spans = spans_json(*view_, worker_, spans_, spans_a_tick); !spans.empty())
      out += event("spans", spans);
    if (const auto more = view_->history().json(history_); !more.empty())
      out += event("history", more);
    return out;
  }

 private:
  std::shared_ptr<cluster_view> view_;
  std::uint32_t worker_;
  std::string start_;  // is sent once, before everything else
  std::uint64_t since_ = 0;
  span_place spans_;
  run_history::place history_;
};

response text(int status, std::string body) {
  return {status, "text/plain; charset=utf-8", std::move(body), ""};
}

}  // namespace

live_site::live_site(std::shared_ptr<cluster_view> view, token_gate gate)
    : view_(std::move(view)), gate_(std::move(gate)), began_ns_(now_ns()) {}

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

namespace {

using view_of_run = const cluster_view&;

/// How a node answers one path of what it knows. `fresh`: a sample is taken first.
struct node_path {
  std::string_view path;
  bool fresh;
  response (*answer)(view_of_run view, const request& r, std::uint32_t worker);
};

response attachment(const char* type, std::string body, const char* name) {
  return {200, type, std::move(body),
          std::string("Content-Disposition: attachment; filename=\"") + name + "\"\r\n"};
}

response history_of(view_of_run view) {
  run_history::place from;
  auto all = view.history().json(from);
  if (all.empty()) all = "{\"points\":[],\"tests\":[],\"lines\":[],\"views\":[]}";
  return {200, json, std::move(all), ""};
}

response dot_of(view_of_run view, std::uint32_t worker) {
  auto dot = view.read([&](const cluster_view::state& s) {
    const auto living = living_graph_of(s, worker);
    return living.graph.actors.empty() ? std::string() : to_dot(living.graph);
  });
  if (dot.empty()) return text(404, "this worker's actors are not known yet\n");
  return {200, "text/vnd.graphviz; charset=utf-8", std::move(dot), ""};
}

constexpr node_path node_paths[] = {
    {"/healthz", false,
     [](view_of_run view, const request&, std::uint32_t) -> response {
       return {200, json, health_json(view), ""};
     }},
    {"/metrics", false,
     [](view_of_run view, const request&, std::uint32_t) -> response {
       return {200, "text/plain; version=0.0.4; charset=utf-8", prometheus_text(view), ""};
     }},
    {"/api/status", true,
     [](view_of_run view, const request&, std::uint32_t) { return text(200, status_text(view)); }},
    {"/api/status.json", true,
     [](view_of_run view, const request&, std::uint32_t) -> response {
       return {200, json, status_json(view), ""};
     }},
    {"/api/members.json", true,
     [](view_of_run view, const request&, std::uint32_t) -> response {
       return {200, json, members_json(view), ""};
     }},
    {"/api/members", true,
     [](view_of_run view, const request&, std::uint32_t) { return text(200, members_text(view)); }},
    {"/api/graph", true,
     [](view_of_run view, const request&, std::uint32_t worker) -> response {
       return {200, json, graph_json(view, worker), ""};
     }},
    {"/api/history", false,
     [](view_of_run view, const request&, std::uint32_t) { return history_of(view); }},
    {"/api/csv", false,
     [](view_of_run view, const request&, std::uint32_t) {
       return attachment("text/csv; charset=utf-8", view.history().csv(), "poseidon.csv");
     }},
    {"/api/trace", true,
     [](view_of_run view, const request& r, std::uint32_t) {
       return attachment(json, chrome_trace_json(view, r.number("iters", 0)),
                         "poseidon-trace.json");
     }},
    {"/api/dot", true,
     [](view_of_run view, const request&, std::uint32_t worker) { return dot_of(view, worker); }},
};

const node_path* find_node_path(std::string_view path) {
  const auto* at = std::find_if(std::begin(node_paths), std::end(node_paths),
                                [&](const node_path& p) { return p.path == path; });
  return at == std::end(node_paths) ? nullptr : at;
}

}  // namespace

bool is_asked_of_the_node(std::string_view path) {
  return find_node_path(path) != nullptr;
}

site::answer live_site::get(const request& r) {
  if (auto refused = gate_.refusal(r)) return {*std::move(refused), {}};
  if (r.path == "/events")
    return {{200, "text/event-stream", "", ""},
            std::make_unique<live_feed>(view_, worker_of(r), began_ns_)};
  // Only a finished run has a recording.
  if (r.path == "/api/recording") return {{200, json, "null", ""}, {}};
  const auto* known = find_node_path(r.path);
  if (known == nullptr) return {page_file(r.path), {}};
  const auto worker = worker_of(r);
  if (known->fresh) view_->sample();
  return {known->answer(*view_, r, worker), {}};
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
                                   std::shared_ptr<cluster_view> view,
                                   std::shared_ptr<const tls_context> tls) {
  server_options o;
  o.at = at;
  o.hosts = hosts_of(at);
  o.tls = std::move(tls);
  token_gate gate(token, o.tls != nullptr);
  return std::make_unique<server>(std::move(o),
                                  std::make_shared<live_site>(std::move(view), std::move(gate)));
}

}  // namespace poseidon::web
