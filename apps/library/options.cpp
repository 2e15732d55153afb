#include "apps/library/options.hpp"

#include "apps/web/open_doors.hpp"
#include "apps/web/token.hpp"
#include "models/words.hpp"

#include <charconv>
#include <functional>
#include <map>
#include <stdexcept>
#include <vector>

namespace poseidon::library {

namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& got,
                         const std::string& wanted) {
  throw std::invalid_argument("option --" + name + " \"" + got + "\": expected " + wanted);
}

double number(const std::string& name, const std::string& value, double least) {
  double out = 0;
  const auto end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, out);
  if (read.ec != std::errc() || read.ptr != end || !(out >= least && out < 1e9))
    refuse(name, value, "a number from " + std::to_string(static_cast<int>(least)) + " on");
  return out;
}

std::chrono::milliseconds seconds(const std::string& name, const std::string& value) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * number(name, value, 0)));
}

std::size_t nodes(const std::string& name, const std::string& value) {
  const auto n = number(name, value, 1);
  if (n != static_cast<double>(static_cast<std::size_t>(n)) || n > 4096)
    refuse(name, value, "a whole number from 1 to 4096");
  return static_cast<std::size_t>(n);
}

route_option routes(const std::string& name, const std::string& value) {
  if (value != "auto" && value != "ps" && value != "sfb" && value != "lowrank")
    refuse(name, value, "auto, ps, sfb or lowrank");
  return parse_routes(value);
}

std::uint32_t rank(const std::string& name, const std::string& value) {
  if (value != "4" && value != "8") refuse(name, value, "4 or 8");
  return value == "4" ? 4 : 8;
}

wire_format wire(const std::string& name, const std::string& value) {
  const auto format = wire_format_of(value);
  if (!format) refuse(name, value, wire_format_list("or"));
  return *format;
}

bool outlives_losses(const std::string& name, const std::string& value) {
  if (value != "go-on" && value != "end") refuse(name, value, "go-on or end");
  return value == "go-on";
}

bool takes_newcomers(const std::string& name, const std::string& value) {
  if (value != "accept" && value != "refuse") refuse(name, value, "accept or refuse");
  return value == "accept";
}

/// "head:7600,other:7600".
std::vector<host_port> addresses(const std::string& value) {
  std::vector<host_port> out;
  for (std::size_t begin = 0; begin <= value.size();) {
    const auto end = std::min(value.find(',', begin), value.size());
    out.push_back(parse_host_port(value.substr(begin, end - begin)));
    begin = end + 1;
  }
  return out;
}

/// "PyTorch=2.6.0|PyTorch 2.6;threads=2".
fingerprint traits(std::string_view text) {
  const auto take = [](std::string_view& from, char until) {
    const auto end = from.find(until);
    std::string part(from.substr(0, end));
    from.remove_prefix(end == from.npos ? from.size() : end + 1);
    return part;
  };
  fingerprint out;
  while (!text.empty()) {
    const auto one = take(text, ';');
    std::string_view left = one;
    trait t{take(left, '='), take(left, '|'), std::string(left)};
    out.push_back(std::move(t));
  }
  return out;
}

/// The options of the program, and what is read when all of them are known.
struct told : options {
  tls_files tls_paths;
  std::uint32_t rank = 0;
};

using setter = std::function<void(told&, const std::string& name, const std::string& value)>;

const std::map<std::string, setter>& setters() {
  static const std::map<std::string, setter> all{
      {"listen", [](auto& o, auto&, auto& v) { o.listen = parse_host_port(v); }},
      {"join", [](auto& o, auto&, auto& v) { o.join = addresses(v); }},
      {"nodes", [](auto& o, auto& n, auto& v) { o.nodes = nodes(n, v); }},
      {"token", [](auto& o, auto&, auto& v) { o.token = v; }},
      {"token-file", [](auto& o, auto& n, auto& v) { o.token = web::read_token("--" + n, v); }},
      {"tls-cert", [](auto& o, auto&, auto& v) { o.tls_paths.certificate = v; }},
      {"tls-key", [](auto& o, auto&, auto& v) { o.tls_paths.key = v; }},
      {"tls-ca", [](auto& o, auto&, auto& v) { o.tls_paths.authority = v; }},
      {"silence-limit", [](auto& o, auto& n, auto& v) { o.silence_limit = seconds(n, v); }},
      {"progress-limit", [](auto& o, auto& n, auto& v) { o.progress_limit = seconds(n, v); }},
      {"link-mbit", [](auto& o, auto& n, auto& v) { o.link_mbit_s = number(n, v, 0); }},
      {"on-loss", [](auto& o, auto& n, auto& v) { o.outlives_losses = outlives_losses(n, v); }},
      {"newcomers", [](auto& o, auto& n, auto& v) { o.takes_newcomers = takes_newcomers(n, v); }},
      {"routes", [](auto& o, auto& n, auto& v) { o.routes = routes(n, v); }},
      {"rank", [](auto& o, auto& n, auto& v) { o.rank = rank(n, v); }},
      {"wire", [](auto& o, auto& n, auto& v) { o.wire = wire(n, v); }},
      {"replay-gflops", [](auto& o, auto& n, auto& v) { o.replay_gflops = number(n, v, 0); }},
      {"trace", [](auto& o, auto&, auto& v) { o.trace = v; }},
      {"graph", [](auto& o, auto&, auto& v) { o.graph = v; }},
      {"traits", [](auto& o, auto&, auto& v) { o.traits = traits(v); }},
      {"web",
       [](auto& o, auto&, auto& v) {
         o.web = parse_host_port(v.find(':') == v.npos ? "127.0.0.1:" + v : v);
       }},
      {"web-token-file",
       [](auto& o, auto& n, auto& v) { o.web_token = web::read_token("--" + n, v); }}};
  return all;
}

}  // namespace

std::vector<std::string> option_names() {
  std::vector<std::string> names;
  for (const auto& [known, set] : setters()) names.push_back(known);
  return names;
}

namespace {

void take_line(told& out, std::string_view line) {
  const auto equals = line.find('=');
  const std::string name(line.substr(0, equals));
  const auto found = setters().find(name);
  if (found == setters().end()) {
    throw std::invalid_argument("there is no option \"" + name + "\"." +
                                did_you_mean(name, option_names()));
  }
  if (equals == line.npos) throw std::invalid_argument("option --" + name + " has no value");
  found->second(out, name, std::string(line.substr(equals + 1)));
}

/// Routes are chosen before the first view, where it has several workers.
void check_routes(const options& o, std::uint32_t rank) {
  const bool by_lowrank = o.routes.what == route_option::kind::lowrank;
  if (rank > 0 && !by_lowrank)
    throw std::invalid_argument(
        "--rank=" + std::to_string(rank) +
        " is for --routes=lowrank, which is not given: give both, or leave out --rank");
  const bool begins_alone = o.nodes.value_or(1) == 1 && (o.join.empty() || o.nodes);
  if (by_lowrank && o.takes_newcomers && begins_alone)
    throw std::invalid_argument(
        "--routes=lowrank with --nodes=1, where others join later: a run that begins with one "
        "worker sends whole "
        "gradients. Begin with two or more, or leave out --routes");
}

void check(const options& o) {
  if (!o.join.empty() && o.nodes && !o.takes_newcomers)
    throw std::invalid_argument(
        "--join is for every worker but the first, and --nodes is for the first. A worker that "
        "joins "
        "a run where there is one, and begins it where there is none, needs --newcomers=accept");
  if (o.nodes.value_or(1) > 1 && !o.listen)
    throw std::invalid_argument(
        "--nodes " + std::to_string(*o.nodes) +
        ", but the other workers need an address to join: give --listen too");
  if (o.takes_newcomers && !o.outlives_losses)
    throw std::invalid_argument(
        "--newcomers=accept needs --on-loss=go-on: the state of one that has joined lies on it "
        "alone until the others have heard of it");
  if (o.listen && o.join.empty() && o.nodes.value_or(1) == 1 && !o.takes_newcomers)
    throw std::invalid_argument(
        "--listen is given, but --nodes 1: nobody would join, or later with --newcomers=accept");
  web::require_tokens({o.listen, o.web, o.join, o.token, o.web_token});
}

}  // namespace

options parse_options(std::string_view text) {
  told out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    if (!line.empty()) take_line(out, line);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  check(out);
  check_routes(out, out.rank);
  out.routes.rank = out.rank;
  out.tls = tls_of_links(out.tls_paths);
  return out;
}

}  // namespace poseidon::library
