// apps/web/live_site.hpp
//
// What a page can ask of a node while it trains. Nothing can be changed.
//
//   /               the page (apps/web/page/)
//   /events?node=W  server-sent events: start, once: {"began_us":..}, when the run began, in the clock of the spans;
//                   then tick, spans, history (apps/web/view_json.hpp), several a second
//   /api/graph?node=W  /api/history  /api/trace?iters=N  /api/dot?node=W  /api/csv
//   /api/status  /api/status.json  /api/members  /api/members.json  /metrics  /healthz
//
// With a token every request needs it: as ?token=T once, which a cookie then keeps, or as "Authorization: Bearer T".
#pragma once
#include "actors/telemetry/cluster_view.hpp"
#include "apps/web/diagnosis.hpp"
#include "apps/web/server.hpp"
#include "apps/web/token.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace poseidon::web {

class live_site : public site {
 public:
  /// `token` empty: every client that can connect is answered.
  live_site(std::shared_ptr<cluster_view> view, token_gate gate);
  [[nodiscard]] answer get(const request& r) override;
  void tick(std::size_t streams) override;

 private:
  [[nodiscard]] std::uint32_t worker_of(const request& r) const;

  std::shared_ptr<cluster_view> view_;
  token_gate gate_;
  /// The run's history and the site are made one after the other, so its seconds count from here.
  std::int64_t began_ns_;
  stall_doctor doctor_;
  std::size_t ticks_ = 0;
};

/// Whether `path` is one that a node answers from its view: all but the page's files, /events and /api/recording.
[[nodiscard]] bool is_asked_of_the_node(std::string_view path);

/// The page's file at `path`, or 404.
[[nodiscard]] response page_file(const std::string& path);

/// Starts the page of a node. `tls` empty: it is not encrypted. Errors  std::invalid_argument, as server.
[[nodiscard]] std::unique_ptr<server> serve_live(const host_port& at, const std::string& token,
                                                 std::shared_ptr<cluster_view> view,
                                                 std::shared_ptr<const tls_context> tls = nullptr);

/// The host names under which a page at `at` answers.
[[nodiscard]] host_rule hosts_of(const host_port& at);

}  // namespace poseidon::web
