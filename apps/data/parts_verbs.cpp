// apps/data/parts_verbs.cpp - poseidon-data partition and merge: cuts data into parts for nodes, and joins parts.
#include "actors/run/opening_task.hpp"
#include "apps/cli.hpp"
#include "apps/data/feature_writer.hpp"
#include "apps/data/progress.hpp"
#include "apps/data/verbs.hpp"
#include "data/parts.hpp"
#include "models/words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace poseidon::app {
namespace {
namespace fs = std::filesystem;
constexpr std::uint64_t most_parts = 512;  // all are open at the same time

struct parts_words {
  std::string source, out, order = "round-robin";
  std::uint64_t parts = 0, block = 1;
  bool force = false;
};

std::string sizes_of(const std::vector<std::uint64_t>& counts, const char* noun) {
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  const auto each = *least == *most ? std::to_string(*most)
                                    : std::to_string(*least) + " to " + std::to_string(*most);
  return std::to_string(counts.size()) + " parts of " + each + " " + noun;
}

int partition_source(const parts_words& w, reporter& report) {
  const fs::path from(w.source);
  partition_options options;
  options.parts = w.parts;
  options.block = w.block;
  options.replace = w.force;
  if (w.order == "contiguous") options.order = part_order::contiguous;
  if (w.order == "contiguous" && w.block != 1)
    throw std::runtime_error("--block " + std::to_string(w.block) +
                             " is for --order round-robin; contiguous parts are one block each.");
  auto prefix = w.out.empty() ? w.source : w.out;
  while (prefix.size() > 1 && prefix.back() == '/') prefix.pop_back();
  const auto what = part_path(prefix, 0).string() + " ... " + std::to_string(w.parts - 1);
  if (!fs::exists(from)) throw std::runtime_error(w.source + ": no such file or folder.");
  if (!is_database(from) && !fs::is_directory(from)) {
    progress shown(report, "partition", what, 1);
    const auto counts = partition_list(from, prefix, options);
    shown.done(sizes_of(counts, "lines"));
    return 0;
  }
  const auto records = open_database(from, show_opening(report.tasks(), w.source));
  progress shown(report, "partition", what, records->size());
  options.progress = [&](std::uint64_t done) { shown.at(done); };
  const auto counts = partition_database(*records, prefix, options);
  shown.done(sizes_of(counts, "records"));
  return 0;
}

int merge_parts(const parts_words& w, reporter& report) {
  std::vector<fs::path> parts;
  for (std::uint64_t k = 0; k < w.parts; ++k) {
    parts.push_back(part_path(w.source, k));
    if (!fs::exists(parts.back()))
      throw std::runtime_error(parts.back().string() + " is not there: part " + std::to_string(k) +
                               " of " + std::to_string(w.parts) +
                               ". Make it (again), or say how many there are with --parts.");
  }
  if (const auto one_more = part_path(w.source, w.parts); fs::exists(one_more))
    throw std::runtime_error(one_more.string() + " is there as well: are there more than " +
                             std::to_string(w.parts) + " parts? If it is none, move it away.");
  const auto out = w.out.empty() ? w.source : w.out;
  progress shown(report, "merge", out, 0);
  const auto records = is_database(parts.front()) ? merge_databases(parts, out, w.force)
                                                  : merge_features(parts, out, w.force);
  shown.done(plural(records, "record") + " of " + std::to_string(w.parts) + " parts");
  return 0;
}

}  // namespace

verb add_partition(CLI::App& app) {
  const auto w = std::make_shared<parts_words>();
  auto* partition = app.add_subcommand(
      "partition",
      "Cut a database, or a list of files, into parts for nodes with disks of their own");
  partition->add_option("source", w->source, "LMDB or LevelDB folder, or a text file")->required();
  partition->add_option("--parts", w->parts, "How many: one for each node")
      ->required()
      ->check(CLI::Range(std::uint64_t{2}, most_parts));
  partition->add_option("--out", w->out, "Part k is called OUT_k; SOURCE_k if not given");
  partition->add_option("--order", w->order, "round-robin or contiguous")
      ->check(CLI::IsMember({"round-robin", "contiguous"}));
  partition
      ->add_option("--block", w->block,
                   "Records that stay together. With the net's batch_size (times iter_size), nodes "
                   "read with --own-data what they would read of the whole")
      ->check(positive_number);
  partition->add_flag("--force", w->force, "Replace parts that are there already");
  partition->footer(
      "Examples\n"
      "  poseidon-data partition train_lmdb --parts 4 --block 64 --out parts/train_lmdb\n"
      "  poseidon-data partition train.txt --parts 4");
  return {partition, [w](reporter& report) { return partition_source(*w, report); }};
}

verb add_merge(CLI::App& app) {
  const auto w = std::make_shared<parts_words>();
  auto* merge =
      app.add_subcommand("merge", "Put parts that partition or extract has written together again");
  merge->add_option("source", w->source, "Parts are called SOURCE_0, SOURCE_1, ...")->required();
  merge->add_option("--parts", w->parts, "How many there are")
      ->required()
      ->check(CLI::Range(std::uint64_t{1}, most_parts));
  merge->add_option("--out", w->out, "What to write; SOURCE if not given");
  merge->add_flag("--force", w->force, "Replace what is there already");
  merge->footer("Example\n  poseidon-data merge fc7_lmdb --parts 4");
  return {merge, [w](reporter& report) { return merge_parts(*w, report); }};
}

}  // namespace poseidon::app
