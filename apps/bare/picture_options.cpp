#include "apps/bare/picture_options.hpp"

#include "models/spec/spec_file.hpp"

#include <charconv>
#include <cmath>
#include <sstream>

namespace poseidon::app {

namespace {

template <class T>
bool read_number(const std::string& text, T& to) {
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, to);
  return read.ec == std::errc{} && read.ptr == end;
}

/// "256" or "240x320".
void read_extents(const std::string& text, picture_request& to) {
  const auto cross = std::min(text.find('x'), text.size());
  const auto second = cross == text.size() ? text : text.substr(cross + 1);
  if (!read_number(text.substr(0, cross), to.height) || !read_number(second, to.width) ||
      to.height < 1 || to.width < 1 || to.height > 16384 || to.width > 16384)
    throw spec_error("--resize " + text + ": expected 256, or HEIGHTxWIDTH as in 240x320.");
}

/// Errors   spec_error: a file that the user has named is wrong.
auto mean_of_option(const std::string& path) {
  try {
    return read_mean(path);
  } catch (const std::runtime_error& e) {
    throw spec_error("--mean " + std::string(e.what()));
  }
}

}  // namespace

void add_preparation_options(CLI::App& app, picture_words& words) {
  app.add_option(
         "--mean", words.mean,
         "mean.binaryproto to subtract; one of another size than the pictures counts by its "
         "channels' means")
      ->default_str("none");
  app.add_option("--mean-value", words.mean_values,
                 "instead: a value to subtract, or one for each of blue, green and red, as in "
                 "104,117,123")
      ->default_str("none");
  app.add_option("--scale", words.scale, "factor for the values after that, as in 0.00390625");
  app.add_option("--resize", words.resize, "N or HxW: to which pictures are resized as a whole")
      ->default_str("the mean image's size; 256 for inputs of 192 to 255; else the input's size");
}

picture_request picture_request_of(const picture_words& words) {
  picture_request r;
  r.scale = words.scale;
  if (!std::isfinite(r.scale))
    throw spec_error("--scale " + std::to_string(words.scale) +
                     ": expected a finite number, as in 0.00390625.");
  if (!words.mean.empty() && !words.mean_values.empty())
    throw spec_error("--mean and --mean-value exclude each other.");
  if (!words.resize.empty()) read_extents(words.resize, r);
  std::stringstream values(words.mean_values);
  for (std::string one; std::getline(values, one, ',');)
    if (!read_number(one, r.mean_values.emplace_back()) || !std::isfinite(r.mean_values.back()))
      throw spec_error("--mean-value " + words.mean_values +
                       ": expected numbers with commas between them.");
  if (!words.mean.empty()) r.mean = mean_of_option(words.mean);
  return r;
}

}  // namespace poseidon::app
