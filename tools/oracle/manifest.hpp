// tools/oracle/manifest.hpp - MANIFEST.json, blobs and comparison, for the runners.
#pragma once
#include "models/caffe.hpp"

#include <google/protobuf/struct.pb.h>

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "tools/oracle/cases.hpp"

namespace poseidon::oracle {

using json = google::protobuf::Value;

/// Errors   std::invalid_argument naming the file.
[[nodiscard]] json read_json(const std::filesystem::path& path);

// Members of a value; a missing one is null, "", 0, false or has no elements. The results of member() and elements() belong to
// `object`, not to `name`, which may be a temporary.
[[nodiscard]] const json& member(const json& object, std::string_view name);
[[nodiscard]] std::string text(const json& object, std::string_view name);
[[nodiscard]] double number(const json& object, std::string_view name, double otherwise = 0);
[[nodiscard]] bool flag(const json& object, std::string_view name);
[[nodiscard]] const google::protobuf::RepeatedPtrField<json>& elements(const json& object,
                                                                       std::string_view name);

/// The cases of one part of MANIFEST.json ("layers", "formats", ...), in its order.
[[nodiscard]] std::vector<json> cases_of(const std::filesystem::path& directory,
                                         const std::string& part);

/// A BlobProto file.   Errors   std::invalid_argument naming it.
[[nodiscard]] ::caffe::BlobProto read_blob(const std::filesystem::path& path);

/// max|a - r| / max(max|r|, 1e-3) must not exceed the tolerance; NaN never passes.
/// Returns  nothing, or `name[i] is a, Caffe has r (deviation d, allowed t)` of the worst value.
[[nodiscard]] std::optional<std::string> deviation(const std::string& name,
                                                   std::span<const float> ours,
                                                   std::span<const float> caffe, double tolerance);

/// Runs `check` in the case's own folder. Its text, or an exception's, is a failure; an
/// unsupported_layer a skip.
[[nodiscard]] result run_case(const std::filesystem::path& directory, const json& one,
                              const std::function<std::optional<std::string>(const json&)>& check);

}  // namespace poseidon::oracle
