#include "models/plan/wire_choice.hpp"

#include "models/first_bytes.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace poseidon {

wire_option parse_wire(const std::string& option) {
  wire_option parsed;
  if (const auto format = wire_format_of(option)) {
    parsed.all = *format;
    return parsed;
  }
  parsed.file = option;
  std::ifstream in(option);
  if (!in)
    throw spec_error("--wire " + option + ": it is none of " + wire_format_list("and") +
                     ", and no file of that name can be read.");
  skip_byte_order_mark(in);
  std::string text;
  for (int line = 1; std::getline(in, text); ++line) {
    std::istringstream words(text.substr(0, text.find('#')));
    std::string layer, name, more;
    if (!(words >> layer)) continue;
    const spec_position at{option, line};
    words >> name;
    const auto format = wire_format_of(name);
    if (!format || words >> more)
      throw spec_error(at, "expected a layer and one of " + wire_format_list("and") + ", found \"" +
                               text + "\".");
    const auto [known, fresh] = parsed.layers.emplace(layer, *format);
    if (!fresh)
      throw spec_error(at, "layer \"" + layer + "\" has a format in line " +
                               std::to_string(parsed.lines[layer]) + " already.");
    parsed.lines[layer] = line;
  }
  return parsed;
}

namespace {

bool travels(const net& n, std::size_t p) {
  return is_learned(n, p) && !n.parameters[p].average_momentum && !n.parameters[p].given;
}

/// Empty where nothing is reduced.
parameter_formats reduced(parameter_formats formats) {
  const bool exact = std::all_of(formats.begin(), formats.end(),
                                 [](wire_format f) { return f == wire_format::float32; });
  return exact ? parameter_formats{} : formats;
}

/// A listed layer that is too small for what it is listed with.
void require_blocks(const net_layer& layer, const net& n, wire_format format,
                    const spec_position& at) {
  std::size_t largest = 0;
  for (const auto p : layer.parameters)
    if (travels(n, p))
      largest = std::max(largest, static_cast<std::size_t>(count(n.parameters[p].shape)));
  if (format_for(format, largest) == format) return;
  throw spec_error(at, "layer \"" + layer.name + "\" has no parameter of " +
                           std::to_string(fewest_in_blocks) + " values or more (its largest has " +
                           std::to_string(largest) + "), and " + std::string(to_string(format)) +
                           " is for these. Leave it out, or give it bfloat16.");
}

}  // namespace

parameter_formats formats_of(const net& n, const wire_option& option) {
  const auto travels = [&](std::size_t p) { return poseidon::travels(n, p); };
  parameter_formats formats(n.parameters.size(), wire_format::float32);
  std::vector<std::string> names;
  for (const auto& layer : n.layers)
    if (std::any_of(layer.parameters.begin(), layer.parameters.end(), travels))
      names.push_back(layer.name);
  for (const auto& [name, format] : option.layers) {
    const spec_position at{option.file, option.lines.at(name)};
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const bool known = std::any_of(n.layers.begin(), n.layers.end(),
                                   [&name = name](const net_layer& l) { return l.name == name; });
    if (known)
      throw spec_error(
          at, "layer \"" + name + "\" learns nothing, so nothing of it travels. Leave it out.");
    throw spec_error(at, "the net \"" + n.name + "\" has no layer \"" + name + "\"." +
                             did_you_mean(name, names));
  }
  std::vector<std::string> chosen_by(n.parameters.size());
  for (const auto& layer : n.layers) {
    const auto listed = option.layers.find(layer.name);
    const auto of_layer = listed == option.layers.end() ? option.all : listed->second;
    if (listed != option.layers.end())
      require_blocks(layer, n, of_layer, {option.file, option.lines.at(layer.name)});
    for (const auto p : layer.parameters) {
      if (!travels(p)) continue;
      const auto format = format_in_use(n.parameters[p], of_layer);
      auto& of_parameter = formats[as_id<parameter_id>(p)];
      if (!chosen_by[p].empty() && of_parameter != format)
        throw spec_error(spec_position{option.file, 0},
                         "layers \"" + chosen_by[p] + "\" (" +
                             std::string(to_string(of_parameter)) + ") and \"" + layer.name +
                             "\" (" + std::string(to_string(format)) + ") share the parameter \"" +
                             n.parameters[p].name +
                             "\", which travels once. Give both the same format.");
      chosen_by[p] = layer.name;
      of_parameter = format;
    }
  }
  return reduced(std::move(formats));
}

parameter_formats formats_asked(const net& declared, wire_format format) {
  parameter_formats formats(declared.parameters.size(), wire_format::float32);
  for (const auto p : formats.ids())
    if (travels(declared, value(p))) formats[p] = format;
  return reduced(std::move(formats));
}

parameter_formats formats_in_use(const net& declared, parameter_formats asked) {
  for (const auto p : asked.ids())
    asked[p] = format_in_use(declared.parameters[value(p)], asked[p]);
  return asked;
}

parameter_formats on_the_server(parameter_formats formats, const parameter_routes& routes) {
  for (const auto p : formats.ids())
    if (on_every_node(routes, p)) formats[p] = wire_format::float32;
  return formats;
}

std::vector<std::string> wire_notes(const net& n, const parameter_formats& formats) {
  std::vector<std::string> notes;
  for (std::size_t i = 1; i < wire_formats; ++i) {
    const auto format = static_cast<wire_format>(i);
    std::vector<std::string> names;
    for (const auto& layer : n.layers)
      if (std::any_of(layer.parameters.begin(), layer.parameters.end(), [&](std::size_t p) {
            return format_of(formats, as_id<parameter_id>(p)) == format;
          }))
        names.push_back(layer.name);
    if (!names.empty())
      notes.push_back("wire: " + std::string(to_string(format)) + " for " + comma_list(names));
  }
  return notes;
}

}  // namespace poseidon
