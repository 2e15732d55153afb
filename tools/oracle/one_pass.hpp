// tools/oracle/one_pass.hpp - a whole net forward once on the CPU, fed by its own data layers.
#pragma once
#include "data/source.hpp"
#include "models/device/device.hpp"
#include "models/files/snapshot.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace poseidon::oracle {

/// Values of the tops of Input layers, by blob name; others are zero.
using named_values = std::map<std::string, std::vector<float>>;

class one_pass {
 public:
  /// `n` and `values` outlive this. Relative sources start in the working directory.
  /// Errors   unsupported_layer for the first type without a kernel; what data and device refuse.
  one_pass(const net& n, const parameter_arrays& values);
  void forward(const named_values& inputs = {});
  [[nodiscard]] std::vector<float> data(const std::string& blob) const;

 private:
  void feed(std::size_t layer, const named_values& inputs);

  const net& net_;
  std::shared_ptr<device> device_;
  std::vector<std::unique_ptr<parameter_values>> holders_;
  std::vector<const parameter_values*> pointers_;
  std::vector<batch> fed_;  ///< by layer
  std::unique_ptr<replica> replica_;
};

/// Filled by the net's fillers.
[[nodiscard]] parameter_arrays fresh_values(const net& n);

/// Builds with the shapes of the data that its layers name.
[[nodiscard]] net build_with_data(const net_file& file, const net_state& state);

}  // namespace poseidon::oracle
