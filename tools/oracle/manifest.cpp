#include "tools/oracle/manifest.hpp"

#include "models/files/snapshot_io.hpp"
#include "models/spec/spec_file.hpp"

#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

namespace poseidon::oracle {

namespace fs = std::filesystem;

json read_json(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  json value;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &value);
  if (!in || !status.ok())
    throw std::invalid_argument(path.string() + ": no JSON: " + std::string(status.message()));
  return value;
}

const json& member(const json& object, std::string_view name) {
  const auto& fields = object.struct_value().fields();
  const auto found = fields.find(std::string(name));
  return found == fields.end() ? json::default_instance() : found->second;
}

std::string text(const json& object, std::string_view name) {
  return member(object, name).string_value();
}

double number(const json& object, std::string_view name, double otherwise) {
  const auto& value = member(object, name);
  return value.kind_case() == json::kNumberValue ? value.number_value() : otherwise;
}

bool flag(const json& object, std::string_view name) {
  return member(object, name).bool_value();
}

const google::protobuf::RepeatedPtrField<json>& elements(const json& object,
                                                         std::string_view name) {
  return member(object, name).list_value().values();
}

std::vector<json> cases_of(const fs::path& directory, const std::string& part) {
  const auto manifest = read_json(directory / "MANIFEST.json");
  const auto& cases = elements(manifest, part);
  return {cases.begin(), cases.end()};
}

::caffe::BlobProto read_blob(const fs::path& path) {
  ::caffe::BlobProto blob;
  read_message(path, "blob", blob);
  return blob;
}

std::optional<std::string> deviation(const std::string& name, std::span<const float> ours,
                                     std::span<const float> caffe, double tolerance) {
  std::ostringstream text;
  text.precision(9);
  if (ours.size() != caffe.size()) {
    text << name << " has " << ours.size() << " values, Caffe has " << caffe.size();
    return text.str();
  }
  double largest = 1e-3;
  for (const float r : caffe) largest = std::max(largest, std::abs(static_cast<double>(r)));
  double worst = -1;
  std::size_t at = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == caffe[i] || (std::isnan(ours[i]) && std::isnan(caffe[i]))) continue;
    const double d = std::abs(static_cast<double>(ours[i]) - caffe[i]) / largest;
    if (d <= worst) continue;
    worst = d;
    at = i;
    if (std::isnan(d)) break;
  }
  if (worst <= tolerance) return std::nullopt;
  text << name << "[" << at << "] is " << ours[at] << ", Caffe has " << caffe[at] << " (deviation "
       << worst << ", allowed " << tolerance << ")";
  return text.str();
}

result run_case(const fs::path& directory, const json& one,
                const std::function<std::optional<std::string>(const json&)>& check) {
  result r{text(one, "path"), outcome::passed, {}};
  try {
    fs::current_path(directory / r.name);
    if (const auto failure = check(one)) r = {r.name, outcome::failed, *failure};
  } catch (const unsupported_layer& e) {
    r = {r.name, outcome::skipped, e.type};
  } catch (const std::exception& e) {
    r = {r.name, outcome::failed, e.what()};
  }
  return r;
}

}  // namespace poseidon::oracle
