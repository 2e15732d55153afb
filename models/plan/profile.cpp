#include "models/plan/profile.hpp"

#include "models/plan/cost.hpp"
#include "models/spec/text_format.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "poseidon/profile.pb.h"

namespace poseidon {

namespace {

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

/// A string of the text format: characters that could end it early are escaped.
std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

layer_time checked(const file::LayerTime& from, const spec_position& where) {
  if (from.name().empty())
    throw spec_error(where, "a layer's times have no name: which layer of the net are they of?");
  for (const auto& [field, ms] :
       {std::pair{"forward_ms", from.forward_ms()}, {"backward_ms", from.backward_ms()}})
    if (!std::isfinite(ms) || ms < 0)
      throw spec_error(where, "layer \"" + from.name() + "\": " + field + " is " + number(ms) +
                                  ", it has to be 0 or more milliseconds.");
  return {from.name(), from.forward_ms(), from.backward_ms(), where};
}

}  // namespace

profile parse_profile(std::string_view text, const std::string& file_name) {
  file::Profile message;
  field_lines lines;
  parse_text(text, file_name, message, lines);
  profile p;
  p.where = {file_name, 0};
  p.net = message.net();
  p.measured = message.measured();
  p.batch = message.batch();
  if (p.batch == 0)
    throw spec_error({file_name, line_of(lines, message, "batch", -1)},
                     "batch is 0: say of how many images the times are, as in batch: 32.");
  p.gflop_s = message.gflop_s();
  if (!std::isfinite(p.gflop_s) || p.gflop_s < 0)
    throw spec_error({file_name, line_of(lines, message, "gflop_s", -1)},
                     "gflop_s is " + number(p.gflop_s) +
                         ", it has to be above 0, or 0 where nobody knows the rate of products.");
  std::map<std::string, int> seen;
  for (int i = 0; i < message.layer_size(); ++i) {
    const spec_position where{file_name, line_of(lines, message, "layer", i)};
    p.layers.push_back(checked(message.layer(i), where));
    const auto [first, fresh] = seen.emplace(message.layer(i).name(), where.line);
    if (!fresh)
      throw spec_error(where, "layer \"" + first->first + "\" has its times here and in line " +
                                  std::to_string(first->second) + ". Delete one of the two.");
  }
  return p;
}

profile read_profile(const std::filesystem::path& path) {
  return parse_profile(read_spec_text(path), path.string());
}

std::string text_of(const profile& p) {
  std::string text = "net: " + in_quotes(p.net) + "\nmeasured: " + in_quotes(p.measured) +
                     "\nbatch: " + std::to_string(p.batch) + "\n";
  if (p.gflop_s > 0) text += "gflop_s: " + number(p.gflop_s) + "\n";
  for (const auto& l : p.layers)
    text += "layer { name: " + in_quotes(l.layer) + " forward_ms: " + number(l.forward_ms) +
            " backward_ms: " + number(l.backward_ms) + " }\n";
  return text;
}

std::vector<pass_ms> times_on(const profile& p, const net& n, std::uint64_t batch) {
  std::vector<std::string> names;
  for (const auto& layer : n.layers) names.push_back(layer.name);
  const auto scale = static_cast<double>(batch) / static_cast<double>(p.batch);
  std::vector<pass_ms> times(n.layers.size());
  for (const auto& l : p.layers) {
    const auto found = std::find(names.begin(), names.end(), l.layer);
    if (found == names.end())
      throw spec_error(l.where, "layer \"" + l.layer + "\" has times, but the net \"" + n.name +
                                    "\" has no layer of that name." + did_you_mean(l.layer, names) +
                                    " A profile belongs to one net; poseidon-node time "
                                    "--profile-out writes another's.");
    times[static_cast<std::size_t>(found - names.begin())] = {scale * l.forward_ms,
                                                              scale * l.backward_ms};
  }
  return times;
}

profile spread_over_flops(const net& n, std::uint64_t batch, double images_per_s,
                          const std::string& measured) {
  if (!std::isfinite(images_per_s) || images_per_s <= 0)
    throw spec_error("a throughput of " + number(images_per_s) +
                     " images/s gives no times: it has to be above 0.");
  std::uint64_t all = 0;
  std::vector<layer_flops> flops;
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    flops.push_back(flops_of(n, l));
    all += flops.back().forward + flops.back().backward;
  }
  if (all == 0)
    throw spec_error("net \"" + n.name +
                     "\" has no convolution and no inner product to spread the time over.");
  const auto ms_per_flop =
      1e3 * static_cast<double>(batch) / images_per_s / static_cast<double>(all);
  profile p;
  p.net = n.name;
  p.measured = measured;
  p.batch = batch;
  p.gflop_s = 1e-6 / ms_per_flop;
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (flops[l].forward + flops[l].backward > 0)
      p.layers.push_back({n.layers[l].name,
                          ms_per_flop * static_cast<double>(flops[l].forward),
                          ms_per_flop * static_cast<double>(flops[l].backward),
                          {}});
  return p;
}

}  // namespace poseidon
