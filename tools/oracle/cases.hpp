// tools/oracle/cases.hpp - a case of poseidon-oracle and its result, for all runners.
#pragma once
#include "models/device/device.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace poseidon::oracle {

enum class outcome { passed, failed, skipped };

struct result {
  std::string name;  ///< "layers/convolution_k3"
  outcome what = outcome::passed;
  /// failed: blob, index, both values; skipped: the layer type that is not built yet; passed: empty, or a
  /// remark.
  std::string detail;
};

/// Each runs every case of its part of `directory`, a folder laid out like the reference set
/// (MANIFEST.json says what is in it), and never throws for a case: an exception is that case's
/// failure.
std::vector<result> run_data_cases(const std::filesystem::path& directory);
std::vector<result> run_format_cases(const std::filesystem::path& directory);
std::vector<result> run_error_cases(const std::filesystem::path& directory);

/// Makes the device that computes a case.
using device_maker = std::function<std::shared_ptr<device>()>;
std::vector<result> run_layer_cases(const std::filesystem::path& directory,
                                    const device_maker& make);
std::vector<result> run_solver_cases(const std::filesystem::path& directory,
                                     const device_maker& make);

}  // namespace poseidon::oracle
