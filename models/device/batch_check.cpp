#include "models/device/batch_check.hpp"

#include <stdexcept>

namespace poseidon {

void check_batch(const std::string& layer, const batch& input,
                 std::span<const std::size_t> values) {
  const auto check = [&](const char* what, std::size_t has, std::size_t needs) {
    if (has != needs)
      throw std::invalid_argument("data layer \"" + layer + "\" was fed " + std::to_string(has) +
                                  " " + what + ", the net needs " + std::to_string(needs));
  };
  check("tops", input.tops.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) check("values", input.tops[i].size(), values[i]);
}

}  // namespace poseidon
