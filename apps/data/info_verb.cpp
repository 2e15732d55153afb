// apps/data/info_verb.cpp - poseidon-data info: describes any file by its content.
#include "actors/run/opening_task.hpp"
#include "apps/data/info.hpp"
#include "apps/data/npy_file.hpp"
#include "apps/data/progress.hpp"
#include "apps/data/verbs.hpp"
#include "data/database.hpp"
#include "data/idx_file.hpp"
#include "data/picture.hpp"
#include "data/synthetic_source.hpp"
#include "models/files/file_kind.hpp"
#include "models/files/hdf5_file.hpp"
#include "models/first_bytes.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace poseidon::app {
namespace {
namespace fs = std::filesystem;

struct info_words {
  std::string source, input, data_root;
  bool quick = false;
};

std::string first_bytes(const fs::path& path) {
  constexpr std::size_t enough = 1 << 16;
  std::string bytes(enough, '\0');
  if (const auto kind = kind_if_no_file(path); !kind.empty() && !fs::is_directory(path))
    throw std::runtime_error(path.string() + ": is " + kind + ", not a file.");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + ": cannot be opened.");
  file.read(bytes.data(), static_cast<std::streamsize>(enough));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

/// Text has no control characters except those that separate lines. Bytes above 127 may be UTF-8.
bool is_text(const std::string& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](unsigned char c) {
    return c >= 0x20 || c == '\n' || c == '\r' || c == '\t' || c == '\v' || c == '\f';
  });
}

int print_info(const info_words& w, reporter& report) {
  info_options options;
  options.quick = w.quick;
  if (!w.input.empty()) options.input = parse_sample_shape(w.input);
  options.data_root = w.data_root;
  options.opening = show_opening(report.tasks(), w.source);
  std::unique_ptr<progress> shown;  // its bar is removed before the facts are printed
  options.progress = [&](std::uint64_t done, std::uint64_t all) {
    options.opening = nullptr;  // the file has been opened: remove the bar
    if (!shown) shown = std::make_unique<progress>(report, "reading", w.source, all);
    shown->at(done);
  };
  const auto found = facts_of(w.source, options);
  shown.reset();
  auto text = found.text();
  text.pop_back();  // the last line's end
  report.result(text);
  json_event e("result");
  e.text("command", "info").text("path", w.source);
  report.event(e.add(found.event()));
  return 0;
}

}  // namespace

facts facts_of(const fs::path& path, const info_options& options) {
  if (!fs::exists(path)) {
    // The prefix of a pair of IDX files, as a Data layer may name it.
    for (const char* ending : {"-images-idx3-ubyte", "-images-idx3-ubyte.gz"})
      if (const fs::path images(path.string() + ending); fs::exists(images))
        return idx_facts(images);
    throw std::runtime_error(path.string() + ": no such file or folder.");
  }
  if (fs::is_directory(path) || is_database(path)) return database_facts(path, options);
  const auto begin = first_bytes(path);
  if (begin.empty()) throw std::runtime_error(path.string() + ": is empty. Was its disk full?");
  if (is_hdf5(path)) return hdf5_facts(path);
  if (is_npy(path)) return array_facts(path);
  if (begin.rfind(std::string("\0\0\x08", 3), 0) == 0 || begin.rfind("\x1f\x8b", 0) == 0)
    return idx_facts(path);
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(begin.data()), begin.size());
  if (const auto kind = kind_of_picture(bytes);
      kind && (kind != picture_kind::pnm || is_picture_ending(path.extension().string())))
    return picture_facts(path);
  if (path.extension() == ".bin") return cifar_facts(path);
  return is_text(begin) || is_utf16(begin) ? text_facts(path, options) : message_facts(path);
}

verb add_info(CLI::App& app) {
  const auto w = std::make_shared<info_words>();
  auto* info = app.add_subcommand("info", "Read a file, of whatever kind, and say what is in it");
  info->add_option(
          "source", w->source,
          "LMDB, LevelDB, IDX, HDF5, .npy, batch of a CIFAR, picture, .caffemodel, .solverstate, "
          ".binaryproto, net, solver, profile, routes, list of images")
      ->required();
  info->add_flag("--quick", w->quick, "Databases: look at the first record only");
  info->add_option("--input", w->input, "CxHxW of an image, for a net whose data are not here");
  info->add_option("--data-root", w->data_root,
                   "folder from which relative sources of a net start");
  info->footer(
      "Examples\n"
      "  poseidon-data info train_lmdb\n"
      "  poseidon-data info --json lenet_iter_10000.caffemodel");
  return {info, [w](reporter& report) { return print_info(*w, report); }};
}

}  // namespace poseidon::app
