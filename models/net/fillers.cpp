#include "models/net/fillers.hpp"

#include "models/net/layer_rules.hpp"
#include "models/random.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

namespace poseidon {

namespace {

/// Value i of a parameter is number i % 4 of group i / 4; `series` 1 is for a second number per
/// value.
class number_stream {
 public:
  number_stream(std::uint64_t seed, std::uint32_t parameter) : seed_(seed), parameter_(parameter) {}

  template <class Write>
  void each_uniform(std::size_t count, std::uint64_t series, Write write) const {
    each(count, series, write, [](const std::array<std::uint32_t, 4>& words) {
      return std::array<double, 4>{unit_float(words[0]), unit_float(words[1]), unit_float(words[2]),
                                   unit_float(words[3])};
    });
  }

  /// Box-Muller, in double so that the float does not depend on the last bit of a math library.
  template <class Write>
  void each_normal(std::size_t count, std::uint64_t series, Write write) const {
    each(count, series, write, [](const std::array<std::uint32_t, 4>& words) {
      std::array<double, 4> normal{};
      for (std::size_t i = 0; i < 4; i += 2) {
        const double radius = std::sqrt(-2 * std::log(1.0 - unit_float(words[i])));
        const double angle = 2 * std::numbers::pi * unit_float(words[i + 1]);
        normal[i] = radius * std::cos(angle);
        normal[i + 1] = radius * std::sin(angle);
      }
      return normal;
    });
  }

 private:
  template <class Write, class Numbers>
  void each(std::size_t count, std::uint64_t series, Write write, Numbers numbers) const {
    for (std::size_t i = 0; i < count; i += 4) {
      const auto group = static_cast<std::uint32_t>(i / 4);
      const auto four = numbers(random_words(seed_, random_use::filler, parameter_, series, group));
      for (std::size_t j = 0; j < 4 && i + j < count; ++j) write(i + j, four[j]);
    }
  }

  std::uint64_t seed_;
  std::uint32_t parameter_;
};

/// Caffe's n for xavier and msra, with its integer divisions.
double fan(const net_parameter& p) {
  const auto values = count(p.shape);
  const auto in = p.shape.empty() ? values : values / p.shape[0];
  const auto out = p.shape.size() > 1 ? values / p.shape[1] : values;
  switch (p.filler.variance_norm()) {
    case ::caffe::FillerParameter::FAN_OUT:
      return static_cast<double>(out);
    case ::caffe::FillerParameter::AVERAGE:
      return static_cast<double>(in + out) / 2;
    default:
      return static_cast<double>(in);
  }
}

[[noreturn]] void fail(const net_parameter& p, const std::string& text) {
  throw spec_error("parameter \"" + p.name + "\" " + to_string(p.shape) + ": " + text);
}

void fill_uniform(const number_stream& numbers, double from, double to, std::span<float> values) {
  numbers.each_uniform(values.size(), 0, [&](std::size_t i, double u) {
    values[i] = static_cast<float>(from + (to - from) * u);
  });
}

void fill_normal(const number_stream& numbers, double mean, double deviation,
                 std::span<float> values) {
  numbers.each_normal(values.size(), 0, [&](std::size_t i, double z) {
    values[i] = static_cast<float>(mean + deviation * z);
  });
}

/// `sparse` of the values of each input are kept, on average.
void fill_gaussian(const net_parameter& p, const number_stream& numbers, std::span<float> values) {
  fill_normal(numbers, p.filler.mean(), p.filler.std(), values);
  if (p.filler.sparse() < 0) return;
  const double outputs = p.shape.empty() ? 1 : static_cast<double>(p.shape[0]);
  const double kept = p.filler.sparse() / outputs;
  numbers.each_uniform(values.size(), 1, [&](std::size_t i, double u) {
    if (u >= kept) values[i] = 0;
  });
}

/// Each output's weights are positive and sum to one.
void fill_unitball(const net_parameter& p, const number_stream& numbers, std::span<float> values) {
  fill_uniform(numbers, 0, 1, values);
  const auto rows = p.shape.empty() ? std::size_t{1} : static_cast<std::size_t>(p.shape[0]);
  const auto row = values.size() / rows;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto weights = values.subspan(r * row, row);
    double sum = 0;
    for (const float w : weights) sum += w;
    for (float& w : weights)
      w = sum > 0 ? static_cast<float>(w / sum) : 1.0f / static_cast<float>(row);
  }
}

void fill_bilinear(const net_parameter& p, std::span<float> values) {
  if (p.shape.size() != 4 || p.shape[2] != p.shape[3])
    fail(p, "the bilinear filler needs 4 axes, the last two of one extent.");
  const auto side = static_cast<std::size_t>(p.shape[3]);
  const double factor = std::ceil(static_cast<double>(side) / 2);
  const double centre = (static_cast<double>(side) - 1) / (2 * factor);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<double>(i % side), y = static_cast<double>(i / side % side);
    values[i] = static_cast<float>((1 - std::abs(x / factor - centre)) *
                                   (1 - std::abs(y / factor - centre)));
  }
}

}  // namespace

void fill(const net_parameter& p, std::uint32_t parameter_index, std::uint64_t seed,
          std::span<float> values) {
  if (static_cast<std::int64_t>(values.size()) != count(p.shape))
    fail(p, "it is to be filled into " + std::to_string(values.size()) + " values, but has " +
                std::to_string(count(p.shape)) + ".");
  const auto& type = p.filler.type();
  if (p.filler.sparse() != -1 && type != "gaussian")
    fail(p, "sparse is for the gaussian filler, this one is " + type + ".");
  const number_stream numbers(seed, parameter_index);
  if (type == "constant") {
    std::fill(values.begin(), values.end(), p.filler.value());
  } else if (type == "uniform") {
    fill_uniform(numbers, p.filler.min(), p.filler.max(), values);
  } else if (type == "gaussian") {
    fill_gaussian(p, numbers, values);
  } else if (type == "positive_unitball") {
    fill_unitball(p, numbers, values);
  } else if (type == "xavier") {
    const double scale = std::sqrt(3 / fan(p));
    fill_uniform(numbers, -scale, scale, values);
  } else if (type == "msra") {
    fill_normal(numbers, 0, std::sqrt(2 / fan(p)), values);
  } else if (type == "bilinear") {
    fill_bilinear(p, values);
  } else {
    fail(p, "the filler \"" + type + "\" is none of Caffe's." + did_you_mean(type, filler_types()));
  }
}

}  // namespace poseidon
