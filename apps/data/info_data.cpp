#include "apps/data/info.hpp"
#include "apps/data/npy_file.hpp"
#include "data/database.hpp"
#include "data/datum_store.hpp"
#include "data/idx_file.hpp"
#include "data/image_list.hpp"
#include "data/image_store.hpp"
#include "models/files/hdf5_file.hpp"
#include "models/printable.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>

namespace poseidon::app {
namespace {
namespace fs = std::filesystem;

std::uint64_t bytes_on_disk(const fs::path& path) {
  if (!fs::is_directory(path)) return fs::file_size(path);
  std::uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(path))
    if (file.is_regular_file()) bytes += file.file_size();
  return bytes;
}

/// The number of images of each label, and their shapes and encodings.
struct image_counts {
  std::map<std::int32_t, std::uint64_t> labels;
  std::uint64_t encoded = 0, floats = 0, other_shapes = 0;
};

image_counts count_images(const image_store& images, const info_options& options) {
  image_counts seen;
  image_scratch scratch;
  const auto some = options.quick ? 1 : images.size();
  for (std::uint64_t n = 0; n < some; ++n) {
    if (options.progress) options.progress(n, some);
    const auto one = images.get(n, scratch);
    ++seen.labels[one.label];
    if (!one.file.empty()) ++seen.encoded;
    if (!one.floats.empty()) ++seen.floats;
    if (shape_of(one) != images.image_shape()) ++seen.other_shapes;
  }
  return seen;
}

fact share_of(std::uint64_t some, std::uint64_t all) {
  if (some == 0 || some == all) return some != 0;
  // at least one record is encoded, so readers need a decoder
  return {std::to_string(some) + " of " + std::to_string(all), "true"};
}

void add_images(facts& to, const image_store& images, const info_options& options) {
  const auto seen = count_images(images, options);
  const auto counted = options.quick ? 1 : images.size();
  const char* values = seen.floats == 0         ? "uint8"
                       : seen.floats == counted ? "float"
                                                : "uint8 and float";
  to.add("records", images.size());
  to.add_field("images", images.size());
  to.add("shape", {to_string(images.image_shape()) + " " + values +
                       (seen.other_shapes == 0
                            ? ""
                            : ", " + std::to_string(seen.other_shapes) + " of other shapes"),
                   fact(images.image_shape()).json});
  to.add("values", values);
  if (seen.other_shapes != 0) to.add("other shapes", seen.other_shapes);
  to.add("encoded", share_of(seen.encoded, counted));
  const auto first = key_text(images.key(0)), last = key_text(images.key(images.size() - 1));
  to.add("keys", {first + " ... " + last, fact(std::vector<std::string>{first, last}).json});
  to.add_field("first_key", first);
  to.add_field("last_key", last);
  const auto least = seen.labels.begin()->first, most = seen.labels.rbegin()->first;
  if (options.quick) {
    to.add("looked at", {"the first record only", "1"});
    return;
  }
  json_event by_label;
  for (const auto& [label, count] : seen.labels) by_label.count(std::to_string(label), count);
  to.add("labels", {std::to_string(seen.labels.size()) + " different, " + std::to_string(least) +
                        " ... " + std::to_string(most),
                    by_label.line()});
  constexpr std::size_t most_lines = 20;
  if (seen.labels.size() > most_lines) return;
  std::vector<std::vector<fact>> rows;
  for (const auto& [label, count] : seen.labels) rows.push_back({label, count});
  to.add_table("by label", {"label", "records"}, std::move(rows));
}

}  // namespace

facts database_facts(const fs::path& path, const info_options& options) {
  const auto records = open_database(path, options.opening);
  const auto images = open_datums(records, picture_colour::as_stored);
  facts found(path.string(), images->describe());
  add_images(found, *images, options);
  found.add("size", bytes_fact(bytes_on_disk(path)));
  return found;
}

facts idx_facts(const fs::path& path) {
  const auto file = read_idx(path);
  const auto kind = file.extents.size() == 1   ? "labels"
                    : file.extents.size() == 3 ? "images"
                                               : "bytes";
  facts found(path.string(), std::string("IDX file of ") + kind);
  found.add("records", file.extents.empty() ? std::int64_t{0} : file.extents[0]);
  found.add("shape", file.extents);
  const auto values = file.values();
  if (!values.empty()) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    found.add("values", {std::to_string(*least) + " ... " + std::to_string(*most),
                         "[" + std::to_string(*least) + "," + std::to_string(*most) + "]"});
  }
  if (file.extents.size() == 1) {
    std::map<int, std::uint64_t> counts;
    for (const auto value : values) ++counts[value];
    std::vector<std::vector<fact>> rows;
    for (const auto& [label, count] : counts) rows.push_back({label, count});
    found.add_table("by label", {"label", "records"}, std::move(rows));
  }
  found.add("size", bytes_fact(bytes_on_disk(path)));
  return found;
}

facts cifar_facts(const fs::path& path) {
  const auto images = open_images(path);
  facts found(path.string(), images->describe());
  add_images(found, *images, {});
  found.add("size", bytes_fact(bytes_on_disk(path)));
  return found;
}

facts picture_facts(const fs::path& path) {
  std::vector<std::uint8_t> file;
  read_whole(path, file);
  const auto kind = kind_of_picture(file).value_or(picture_kind::pnm);
  facts found(path.string(), std::string(name_of(kind)) + " picture");
  picture p;
  try {
    p = decode_picture(file, picture_colour::colour);
  } catch (const std::runtime_error& e) {
    throw std::runtime_error(path.string() + " " + e.what() + ".");
  }
  found.add("height", p.height);
  found.add("width", p.width);
  try {
    found.add("channels", decode_picture(file, picture_colour::as_stored).channels);
  } catch (const std::runtime_error&) {
    found.add("bits", 16);
  }
  found.add("size", bytes_fact(file.size()));
  if (!p.warning.empty()) found.add("warning", p.warning);
  return found;
}

facts array_facts(const fs::path& path) {
  const auto file = read_npy_header(path);
  facts found(path.string(), "NumPy array");
  found.add("shape", file.extents);
  found.add("values", file.kind);
  if (file.column_major) found.add("order", "Fortran's");
  found.add("size", bytes_fact(bytes_on_disk(path)));
  return found;
}

namespace {
/// `depth` limits the recursion, because groups may contain each other.
void add_datasets(const hdf5_reader& file, const std::string& group, int depth,
                  std::vector<std::vector<fact>>& rows) {
  constexpr int deepest = 16;
  if (depth > deepest) return;
  const auto links = file.list(group);
  const auto below = [&](const std::string& name) {
    return group.empty() ? name : group + "/" + name;
  };
  for (const auto& name : links.datasets) {
    fact extents = "";
    try {
      extents = file.shape_of(below(name));
    } catch (const std::invalid_argument& e) {
      const auto before = file.name() + ": dataset \"" + below(name) + "\" ";
      const std::string text = e.what();
      extents = text.rfind(before, 0) == 0 ? text.substr(before.size()) : text;
    }
    rows.push_back({below(name), extents});
  }
  for (const auto& [name, reason] : links.unreadable)
    rows.push_back({below(name), "cannot be opened: " + reason});
  for (const auto& name : links.groups) add_datasets(file, below(name), depth + 1, rows);
}
}  // namespace

facts hdf5_facts(const fs::path& path) {
  const hdf5_reader file(path);
  if (file.has("iter") && file.has("history")) return state_facts(path);
  std::vector<std::vector<fact>> rows;
  add_datasets(file, "", 0, rows);
  const bool weights = !rows.empty() && file.has("data") &&
                       std::all_of(rows.begin(), rows.end(), [](const auto& row) {
                         const auto& name = row[0].text;
                         return name.rfind("data/", 0) == 0 || name.rfind("diff/", 0) == 0;
                       });
  if (weights) return weights_facts(path);
  facts found(path.string(), "HDF5 file");
  found.add("datasets", rows.size());
  found.add("size", bytes_fact(bytes_on_disk(path)));
  found.add_table("by name", {"dataset", "shape"}, std::move(rows));
  return found;
}

}  // namespace poseidon::app
