// apps/bare/picture_options.hpp - the command line options that say how pictures become a net's input.
#pragma once
#include "apps/bare/picture_source.hpp"

#include <CLI/CLI.hpp>

#include <string>

namespace poseidon::app {

struct picture_words {
  std::string mean, mean_values, resize;
  float scale = 1;
};

void add_preparation_options(CLI::App& app, picture_words& words);

/// The request without its files.
/// Errors   spec_error: values that cannot be read, --mean and --mean-value. std::runtime_error: the mean file.
[[nodiscard]] picture_request picture_request_of(const picture_words& words);

}  // namespace poseidon::app
