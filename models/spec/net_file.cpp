#include "models/spec/net_file.hpp"

#include "models/spec/spec_kind.hpp"
#include "models/spec/text_format.hpp"
#include "models/spec/upgrade.hpp"

namespace poseidon {

net_file parse_net(std::string_view text, const std::string& file_name) {
  net_file file;
  field_lines lines;
  parse_text(text, file_name, file.spec, lines);
  const auto place = [&](const char* field, int index) {
    return spec_position{file_name, line_of(lines, file.spec, field, index)};
  };
  for (int i = 0; i < file.spec.layers_size(); ++i) file.layer_places.push_back(place("layers", i));
  for (int i = 0; i < file.spec.layer_size(); ++i) file.layer_places.push_back(place("layer", i));
  upgrade_net(file.spec, file.layer_places,
              file.spec.input_size() > 0 ? place("input", 0) : spec_position{file_name, 0});
  return file;
}

net_file read_net(const std::filesystem::path& path) {
  const auto text = read_spec_text(path);
  if (kind_of_spec(outer_fields(text)) == spec_kind::solver)
    throw spec_error({path.string(), 0},
                     "this is a solver, and a net is needed here: the file that the solver names "
                     "with net or train_net.");
  auto file = parse_net(text, path.string());
  file.directory = path.parent_path();
  return file;
}

}  // namespace poseidon
