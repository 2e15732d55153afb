#include "apps/terminal/json_console.hpp"

#include "apps/terminal/json_event.hpp"

namespace poseidon::app {

namespace {

json_event named(const std::vector<output_value>& outputs, const std::vector<double>& values) {
  json_event e;
  for (std::size_t o = 0; o < outputs.size() && o < values.size(); ++o)
    e.number(outputs[o].name, values[o]);
  return e;
}

void put(json_event& e, const char* key, const std::optional<double>& value) {
  if (value)
    e.number(key, *value);
  else
    e.null(key);
}

}  // namespace

json_console::json_console(verbosity level, std::size_t nodes)
    : run_display(level, nodes, live_terminal(read_signs(), true)) {}

void json_console::interval(const iteration& i, const std::vector<output_value>& outputs,
                            const run_meter::interval& rates) {
  if (level() == verbosity::quiet) return;
  json_event e("progress");
  e.count("clock", i.clock).count("last_clock", i.last_clock);
  e.number("loss", i.loss).number("learning_rate", i.learning_rate);
  e.object("outputs", named(outputs, i.outputs));
  e.count("images", i.images).number("images_per_s", rates.images_s);
  put(e, "hidden", rates.hidden);
  put(e, "bytes_out_per_s", rates.net ? std::optional(rates.net->out_per_s) : std::nullopt);
  put(e, "bytes_in_per_s", rates.net ? std::optional(rates.net->in_per_s) : std::nullopt);
  put(e, "left_s", rates.left_s);
  put(e, "tests_left_s", rates.tests_left_s);
  lines().out(e.line());
}

void json_console::tested(std::size_t test_net, std::uint64_t clock,
                          const std::vector<double>& means,
                          const std::vector<output_value>& outputs) {
  json_event e("test");
  e.count("net", test_net).count("clock", clock).object("outputs", named(outputs, means));
  lines().out(e.line());
}

void json_console::snapshot(std::uint64_t clock, const std::string& path,
                            const std::string& error) {
  json_event e(error.empty() ? "snapshot" : "snapshot_failed");
  e.count("clock", clock).text("path", path);
  if (!error.empty()) e.text("error", error);
  lines().out(e.line());
}

void json_console::viewed(const view& v) {
  json_event e("view");
  e.count("epoch", v.epoch).count("first_clock", v.first_clock);
  e.count("first_sample", v.first_sample);
  if (v.samples > 0) e.count("samples", v.samples);
  json_array members;
  for (const auto seat : v.seats) members.put(seat);
  e.json("members", {members.text()});
  if (!v.witnesses.empty()) {
    json_array witnesses;
    for (const auto seat : v.witnesses) witnesses.put(seat);
    e.json("witnesses", {witnesses.text()});
  }
  e.text("changed", v.changed).text("why", v.why);
  e.count("paused_ms", v.paused_ms).text("text", describe(v));
  lines().out(e.line());
}

void json_console::promised(const promise& p) {
  if (level() == verbosity::quiet) return;
  json_array differences;
  for (const auto& d : p.differences) {
    json_array who;
    for (const auto& [value, seats] : d.who) {
      json_array workers;
      for (const auto seat : seats) workers.put(seat);
      who.put(json_object().put("value", value).put("workers", workers));
    }
    differences.put(json_object().put("what", d.what).put("who", who));
  }
  json_event e("results");
  e.json("bit_equal", {p.bit_equal ? "true" : "false"});
  lines().out(e.json("differences", {differences.text()}).text("text", p.text).line());
}

void json_console::note(const std::string& text) {
  if (level() != verbosity::quiet) lines().out(json_event("note").text("text", text).line());
}

void json_console::warning(const std::string& text) {
  lines().out(json_event("warning").text("text", text).line());
}

void json_console::detail(const std::string& text) {
  if (level() == verbosity::debug) lines().out(json_event("detail").text("text", text).line());
}

void json_console::ended(int exit_code, const std::string& reason) {
  json_event e("end");
  e.count("exit_code", static_cast<std::uint64_t>(exit_code)).text("reason", reason);
  lines().out(e.line());
  if (!reason.empty()) lines().err(reason);
  lines().close();
}

}  // namespace poseidon::app
