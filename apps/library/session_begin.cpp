// apps/library/session_begin.cpp - the part of session that is about how a worker begins a run, or joins one.
#include "actors/cluster/looking.hpp"
#include "apps/library/session.hpp"
#include "apps/web/live_site.hpp"
#include "cpu/cpu_device.hpp"
#include "cpu/fingerprint.hpp"
#include "models/words.hpp"
#include "replay/replay_device.hpp"

#include <algorithm>
#include <utility>

namespace poseidon::library {

namespace {

using steady = std::chrono::steady_clock;

}  // namespace

node_setup session::setup() const {
  node_setup s;
  s.around = program_;
  program_->traits = options_.traits;
  // Where the program computes on another device, the processor only adds and steps, with the same bits everywhere.
  const bool elsewhere = std::any_of(options_.traits.begin(), options_.traits.end(),
                                     [](const auto& t) { return t.name == trait_names::device; });
  for (const auto& t : cpu::fingerprint_of_steps())
    if (!elsewhere || t.name != trait_names::processor) program_->traits.push_back(t);
  if (options_.join.empty()) {
    s.run.emplace();
    s.run->declared = program_->declared;
    s.run->optimizer = program_->optimizer;
    s.run->workers = options_.nodes.value_or(1);
    s.choices.wire.all = options_.wire.value_or(wire_format::float32);
    s.run->survive = options_.outlives_losses ? 1 : 0;
    s.run->takes_newcomers = options_.takes_newcomers;
  }
  s.node.compute = make_cpu_device();
  if (options_.replay_gflops > 0) {
    profile times;
    times.gflop_s = options_.replay_gflops;
    s.node.compute = make_replay_device(times, s.node.compute);
  }
  s.node.replicas = 1;
  s.cluster.listen = options_.listen;
  s.cluster.join = options_.join;
  s.cluster.token = options_.token;
  s.cluster.tls = options_.tls;
  s.cluster.silence_limit = options_.silence_limit;
  s.cluster.progress_limit = options_.progress_limit;
  s.cluster.link_mbit_s = options_.link_mbit_s;
  s.choices.routes = options_.routes;
  s.records.trace_file = options_.trace;
  s.records.graph_file = options_.graph;
  s.records.shows = options_.web.has_value();
  s.display = lines_;
  s.ended = [around = program_, left_out = left_out_](const node_result& r) {
    *left_out = !r.others.empty();
    around->fresh.fail(r.error.empty() ? "the run is over" : r.error);
    around->clocks.close();
    around->shared_in_flight.close();
    around->views.close();
  };
  return s;
}

/// It joins the others' run where they are in one, and else begins it.
void session::look_for_run() {
  if (options_.join.empty() || !options_.nodes) return;
  options_.join = poseidon::look_for_run(options_.join, options_.token, options_.tls);
  lines_->note(options_.join.empty() ? "nobody at join is in a run: this worker begins it"
                                     : "the worker at " + to_string(options_.join.front()) +
                                           " is in a run: this worker joins it");
}

void session::start() {
  look_for_run();
  program_->wanted_wire = options_.wire;
  program_->takes_newcomers = options_.takes_newcomers;
  if (options_.join.empty()) program_->wire = options_.wire.value_or(wire_format::float32);
  auto s = setup();
  prepare(s);
  view_ = s.records.view;
  if (options_.web) {
    page_ = web::serve_live(*options_.web, options_.web_token, view_, options_.tls);
    lines_->note("page at " + page_->url());
  }
  auto host = std::make_unique<node_host>();
  host->start(std::move(s));
  host_ = std::move(host);
  phase_ = phase::joining;
}

std::string session::why_it_did_not_begin() {
  const std::lock_guard lock(ends_);
  const bool has_left = phase_ == phase::leaving || phase_ == phase::over;
  return (has_left ? "this worker has left the run before it began: " : "") +
         program_->fresh.error();
}

bool session::begin(seconds limit) {
  require_own_process();
  const auto since = steady::now();
  const auto require_joining = [&] {
    require_not_left();
    if (phase_ == phase::made) throw session_error("nothing has been declared");
    if (phase_ == phase::training) throw session_error("the run has begun already");
  };
  {
    const std::lock_guard lock(ends_);
    require_joining();
    if (phase_ == phase::declared) start();
  }
  for (const auto p : program_->lent.ids()) {
    const auto answer = program_->fresh.wait(p, 0, left_of(limit, since));
    if (answer == fresh_board::answer::not_yet) return false;
    if (answer == fresh_board::answer::failed) throw session_error(why_it_did_not_begin());
  }
  if (!all_is_shared(left_of(limit, since))) return false;
  // The first values may be here before this node is told that training begins.
  if (!program_->views.wait_for_first(left_of(limit, since))) return false;
  if (program_->views.newest().seats.empty()) throw session_error(why_it_did_not_begin());
  const std::lock_guard lock(ends_);
  if (phase_ == phase::training) return true;  // for another thread, which waited as well
  require_joining();
  see_view();
  require_same_end();
  for (auto& next : next_clock_) next = first_clock();
  program_->first_state = {};
  wire_ = may_have_others() ? program_->wire : wire_format::float32;
  program_->calls.note(steady::now());
  phase_ = phase::training;
  return true;
}

}  // namespace poseidon::library
