#include "apps/data/info.hpp"
#include "data/image_list.hpp"
#include "data/list_file.hpp"
#include "data/source.hpp"
#include "models/plan/profile.hpp"
#include "models/plan/routes.hpp"
#include "models/solver/solver_file.hpp"
#include "models/spec/spec_kind.hpp"
#include "models/spec/text_format.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

namespace poseidon::app {
namespace {
namespace fs = std::filesystem;

std::vector<std::string> names_of(const net& n, const std::vector<std::size_t>& blobs) {
  std::vector<std::string> names;
  for (const auto b : blobs) names.push_back(n.blobs[b].name);
  return names;
}

void add_resolved(facts& to, const net& n, const std::string& phase) {
  std::vector<std::vector<fact>> rows;
  for (const auto& layer : n.layers) {
    if (layer.type == "Split") continue;
    std::vector<std::string> shapes;
    for (const auto top : layer.tops) shapes.push_back(to_string(n.blobs[top].shape));
    std::int64_t parameters = 0;
    for (const auto& s : layer.parameter_shapes) parameters += count(s);
    rows.push_back({layer.name, layer.type, names_of(n, layer.bottoms), names_of(n, layer.tops),
                    shapes, parameters});
  }
  std::int64_t parameters = 0;
  for (const auto& p : n.parameters) parameters += count(p.shape);
  to.add("parameters", parameters);
  to.add_table("layers in phase " + phase,
               {"layer", "type", "bottoms", "tops", "top shapes", "parameters"}, std::move(rows));
}

/// The layers as the file lists them, for nets whose shapes are unknown.
void add_unresolved(facts& to, const net_file& file) {
  std::vector<std::vector<fact>> rows;
  for (const auto& layer : file.spec.layer())
    rows.push_back({layer.name(), layer.type(),
                    std::vector<std::string>(layer.bottom().begin(), layer.bottom().end()),
                    std::vector<std::string>(layer.top().begin(), layer.top().end())});
  to.add_table("layers", {"layer", "type", "bottoms", "tops"}, std::move(rows));
}

facts net_facts(const fs::path& path, const std::set<std::string>& fields,
                const info_options& options) {
  const auto file = read_net(path);
  facts found(path.string(), "net");
  found.add("net", file.spec.name());
  found.add("format", fields.count("layers") > 0 ? "V1" : "V2");
  found.add("layers", file.spec.layer_size());
  std::string reason;
  for (const auto phase : {::caffe::TRAIN, ::caffe::TEST}) {
    build_options build;
    build.state.phase = phase;
    source_options sources;
    sources.phase = phase;
    sources.synthetic = options.input;
    sources.data_root = options.data_root;
    build.sources = shapes_from_sources(sources);
    try {
      add_resolved(found, build_net(file, build), ::caffe::Phase_Name(phase));
      return found;
    } catch (const std::invalid_argument& e) {
      if (reason.empty()) reason = e.what();
    }
  }
  found.add("shapes", "not known: " + reason + " --input CxHxW stands for the data.");
  add_unresolved(found, file);
  return found;
}

facts solver_facts(const fs::path& path) {
  const auto file = read_solver(path);
  const auto& s = file.spec;
  facts found(path.string(), "solver");
  found.add("type", s.type());
  found.add("train net", file.train_net.spec.name());
  found.add("test nets", file.test_nets.size());
  found.add("iterations", s.max_iter());
  found.add("iter_size", s.iter_size());
  found.add("base_lr", static_cast<double>(s.base_lr()));
  found.add("lr_policy", policy_of(s));
  const auto last = static_cast<std::uint64_t>(std::max(1, s.max_iter()) - 1);
  found.add("last lr", static_cast<double>(learning_rate(s, last)));
  found.add("momentum", static_cast<double>(s.momentum()));
  found.add("weight_decay", static_cast<double>(s.weight_decay()));
  found.add("snapshots",
            {s.snapshot_prefix() +
                 (s.snapshot() > 0 ? " every " + std::to_string(s.snapshot()) : " at the end"),
             fact(s.snapshot_prefix()).json});
  return found;
}

facts profile_facts(const fs::path& path) {
  const auto p = read_profile(path);
  facts found(path.string(), "profile of a device");
  double forward = 0, backward = 0;
  for (const auto& layer : p.layers) {
    forward += layer.forward_ms;
    backward += layer.backward_ms;
  }
  found.add("net", p.net);
  found.add("measured", p.measured);
  found.add("batch", p.batch);
  found.add("layers", p.layers.size());
  found.add("forward ms", forward);
  found.add("backward ms", backward);
  if (forward + backward > 0)
    found.add("images/s", 1000 * static_cast<double>(p.batch) / (forward + backward));
  found.add("gflop_s", p.gflop_s);
  return found;
}

enum class comments { taken_away, kept };

std::vector<std::string> lines_of(const std::string& text, comments what) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (what == comments::taken_away)
      line.erase(std::find(line.begin(), line.end(), '#'), line.end());
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0)
      line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string last_word(const std::string& line) {
  const auto space = line.find_last_of(" \t");
  return space == std::string::npos ? "" : line.substr(space + 1);
}

bool is_number(const std::string& word) {
  std::int64_t number = 0;
  const auto* end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data(), end, number);
  return !word.empty() && error == std::errc{} && stopped == end;
}

facts routes_facts(const fs::path& path) {
  const auto option = parse_routes(path.string());
  facts found(path.string(), "routes of layers");
  std::vector<std::vector<fact>> rows;
  for (const auto& e : option.entries)
    rows.push_back({e.layer, std::string(to_string(e.where)), e.clock});
  found.add("layers", rows.size());
  found.add_table("routes", {"layer", "route", "from iteration"}, std::move(rows));
  return found;
}

facts list_facts(const fs::path& path, const std::vector<std::string>& lines) {
  facts found(path.string(), "list of images with labels");
  std::set<std::int64_t> labels;
  for (const auto& line : lines) labels.insert(std::stoll(last_word(line)));
  found.add("images", lines.size());
  found.add("labels",
            {std::to_string(labels.size()) + " different, " + std::to_string(*labels.begin()) +
                 " ... " + std::to_string(*labels.rbegin()),
             "[" + std::to_string(*labels.begin()) + "," + std::to_string(*labels.rbegin()) + "]"});
  found.add("first", lines.front().substr(0, lines.front().find_last_of(" \t")));
  return found;
}

}  // namespace

facts text_facts(const fs::path& path, const info_options& options) {
  const auto text = read_spec_text(path);
  const auto fields = outer_fields(text);
  switch (kind_of_spec(fields)) {
    case spec_kind::profile:
      return profile_facts(path);
    case spec_kind::solver:
      return solver_facts(path);
    case spec_kind::net:
      return net_facts(path, fields, options);
    case spec_kind::other:
      break;
  }
  const auto lines = lines_of(text, comments::kept),
             commented = lines_of(text, comments::taken_away);
  const auto all = [](const std::vector<std::string>& of, auto test) {
    return !of.empty() && std::all_of(of.begin(), of.end(), test);
  };
  if (all(commented, [](const std::string& line) {
        const auto word = last_word(line);
        return word == "ps" || word == "sfb";
      }))
    return routes_facts(path);
  const auto image = [](const std::string& line) { return is_number(last_word(line)); };
  if (all(lines, image)) return list_facts(path, lines);
  const auto files = [&](const std::string& line) { return fs::is_regular_file(line); };
  if (all(commented, image) || (all(commented, files) && !all(lines, files)))
    throw std::runtime_error(path.string() + ": a list with comments. " + no_comments);
  if (all(lines, files)) {
    facts found(path.string(), "list of files");
    found.add("files", lines.size());
    found.add("first", lines.front());
    return found;
  }
  throw std::runtime_error(
      path.string() +
      ": text of no kind that is known: neither net, solver, profile, routes "
      "(\"layer ps|sfb\" a line), list of images (\"path label\" a line) nor list "
      "of files that are there.");
}

}  // namespace poseidon::app
