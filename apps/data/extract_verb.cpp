// apps/data/extract_verb.cpp - poseidon-data extract: Caffe's extract_features, on one machine or in parts on several.
#include "apps/bare/feature_run.hpp"
#include "apps/bare/picture_options.hpp"
#include "apps/cli.hpp"
#include "apps/data/feature_writer.hpp"
#include "apps/data/progress.hpp"
#include "apps/data/verbs.hpp"
#include "data/parts.hpp"
#include "models/solver/solver_file.hpp"
#include "models/words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace poseidon::app {
namespace {
namespace fs = std::filesystem;

struct extract_words {
  std::string model, weights, blobs, out, format = "lmdb", part, data_root, stages, images;
  picture_words prepare;
  int level = 0;
  std::uint64_t batches = 0;
  std::uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
  bool force = false;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream rest(text);
  for (std::string part; std::getline(rest, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

/// This process's share: part `number` of `of`.
struct share {
  std::uint64_t number = 0, of = 1;
};

share share_of(const std::string& text) {
  share s;
  if (text.empty()) return s;
  const auto* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, s.number);
  if (first.ec == std::errc{} && first.ptr != end && *first.ptr == '/') {
    const auto second = std::from_chars(first.ptr + 1, end, s.of);
    if (second.ec == std::errc{} && second.ptr == end && s.number < s.of) return s;
  }
  throw std::runtime_error("--part " + text +
                           ": expected K/N, with K from 0 to N - 1: the first of four is 0/4.");
}

/// Batches [first, last), and the number of their rows that count: the last batch continues with the first record of the
/// data, and those rows count only with --batches.
struct extent {
  std::uint64_t first = 0, last = 0, rows = 0;
};

extent extent_of(const extract_words& w, const share& s, const feature_run& run) {
  constexpr std::uint64_t endless = std::uint64_t{1} << 48;
  if (w.batches == 0 && run.records() > endless)
    throw std::runtime_error(w.model +
                             ": its data have no end. Say how much of them with --batches.");
  const auto rows = w.batches != 0 ? w.batches * run.batch() : run.records();
  const auto batches = (rows + run.batch() - 1) / run.batch();
  if (batches < s.of)
    throw std::runtime_error("--part " + w.part + ": there are " + std::to_string(batches) +
                             (batches == 1 ? " batch" : " batches") + " of " +
                             std::to_string(run.batch()) + ", too few for as many parts.");
  extent e{batches * s.number / s.of, batches * (s.number + 1) / s.of, 0};
  e.rows = std::min(e.last * run.batch(), rows) - e.first * run.batch();
  return e;
}

std::vector<fs::path> targets_of(const extract_words& w, const share& s, std::size_t blobs) {
  const auto names = split(w.out);
  if (names.size() != blobs)
    throw std::runtime_error("--blobs names " + std::to_string(blobs) + " and --out " +
                             std::to_string(names.size()) + ": give one place for each blob.");
  std::vector<fs::path> targets;
  for (const auto& name : names) {
    targets.push_back(w.part.empty() ? fs::path(name) : part_path(name, s.number));
    if (std::count(names.begin(), names.end(), name) > 1)
      throw std::runtime_error("--out names " + name + " twice.");
  }
  return targets;
}

int extract(const extract_words& w, reporter& report) {
  const auto mine = share_of(w.part);
  feature_request request;
  request.model = w.model;
  request.weights = split_paths(w.weights);
  request.blobs = split(w.blobs);
  request.data_root = w.data_root;
  request.level = w.level;
  request.stages = split(w.stages);
  request.lanes = w.threads;
  std::shared_ptr<const picture_source> source;
  if (!w.images.empty())
    request.input = [&](const shape& sample) {
      auto pictures = picture_request_of(w.prepare);
      pictures.files = find_pictures(split(w.images));
      const auto made = std::make_shared<picture_source>(std::move(pictures), sample);
      source = made;
      return made;
    };
  const auto targets = targets_of(w, mine, request.blobs.size());
  feature_run run(request);
  const auto all = extent_of(w, mine, run);

  std::vector<std::unique_ptr<feature_writer>> writers;
  for (std::size_t b = 0; b < targets.size(); ++b)
    writers.push_back(make_feature_writer(
        {w.format, targets[b], run.row_shapes()[b], all.first * run.batch(), all.rows, w.force}));
  progress shown(report, "extract", w.blobs, all.rows);
  std::uint64_t done = 0;
  run.run(all.first, all.last, [&](std::uint64_t, const feature_batch& batch) {
    const auto rows = std::min(run.batch(), all.rows - done);
    for (std::size_t b = 0; b < writers.size(); ++b) {
      const auto each = static_cast<std::size_t>(count(run.row_shapes()[b]));
      for (std::size_t n = 0; n < rows; ++n)
        writers[b]->add(std::span(batch.values[b]).subspan(n * each, each),
                        batch.labels.empty() ? 0 : batch.labels[n]);
    }
    done += rows;
    shown.at(done);
  });
  for (std::uint64_t n = 0; source != nullptr && n < source->size(); ++n)
    if (const auto what = source->warning(n); !what.empty())
      report.warning("poseidon-data: " + what);
  for (auto& writer : writers) writer->seal();
  for (auto& writer : writers) writer->finish();
  std::string result = plural(done, "row");
  for (std::size_t b = 0; b < targets.size(); ++b)
    result += ", " + request.blobs[b] + " (" + to_string(run.row_shapes()[b]) + ") in " +
              targets[b].string();
  shown.done(result, json_event().count("rows", done));
  return 0;
}

}  // namespace

verb add_extract(CLI::App& app) {
  const auto w = std::make_shared<extract_words>();
  auto* command = app.add_subcommand("extract",
                                     "Write the values that a trained net gives to some of its "
                                     "blobs, as Caffe's extract_features");
  command
      ->add_option("--model", w->model,
                   "net prototxt with a data layer in phase TEST, or with an Input layer")
      ->required();
  command->add_option(
      "--weights", w->weights,
      ".caffemodel or .caffemodel.h5 files with commas between them, copied by layer name");
  command->add_option("--blobs", w->blobs, "names of blobs, with commas between them")->required();
  command->add_option("--out", w->out, "a place for each blob, with commas between them")
      ->required();
  command
      ->add_option("--format", w->format, "lmdb (Datum with float_data), leveldb, npy, csv, hdf5")
      ->check(CLI::IsMember(feature_formats()));
  command
      ->add_option("--batches", w->batches,
                   "so many batches, beyond the end of the data from their beginning again; "
                   "without it each record once")
      ->check(positive_number)
      ->default_str("");
  command->add_option("--part", w->part,
                      "K/N: the K-th of N even shares, from 0 on; written to OUT_K, see merge");
  command->add_option("--threads", w->threads, "batches at a time")
      ->check(CLI::Range(1, 1024))
      ->default_str("the number of cores");
  command->add_option("--images", w->images,
                      "for a deploy net (with an Input layer): picture files and folders of them, "
                      "with commas between them");
  add_preparation_options(*command, w->prepare);
  command->add_option("--data-root", w->data_root, "folder from which relative data sources start");
  command->add_option("--level", w->level, "for the net's include and exclude rules");
  command->add_option("--stage", w->stages,
                      "for the net's include and exclude rules; comma separated");
  command->add_flag("--force", w->force, "Replace what is there already");
  command->footer(
      "Examples\n"
      "  poseidon-data extract --model train_val.prototxt --weights net.caffemodel --blobs "
      "fc7,prob --out "
      "fc7_lmdb,prob_lmdb\n"
      "  poseidon-data extract --model train_val.prototxt --weights net.caffemodel --blobs fc7 "
      "--format npy "
      "--out fc7.npy\n"
      "On four machines that see the same files, K from 0 to 3; the result is that of one, bit for "
      "bit:\n"
      "  poseidon-data extract --model train_val.prototxt --weights net.caffemodel --blobs fc7 "
      "--out fc7_lmdb "
      "--part K/4\n"
      "  poseidon-data merge fc7_lmdb --parts 4");
  return {command, [w](reporter& report) { return extract(*w, report); }};
}

}  // namespace poseidon::app
