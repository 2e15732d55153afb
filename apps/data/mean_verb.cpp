// apps/data/mean_verb.cpp - poseidon-data mean: Caffe's compute_image_mean.
#include "actors/run/opening_task.hpp"
#include "apps/data/progress.hpp"
#include "apps/data/verbs.hpp"
#include "data/image_store.hpp"
#include "data/mean_file.hpp"
#include "models/words.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

namespace poseidon::app {
namespace {

struct mean_words {
  std::string source, out;
};

int make_mean(const mean_words& w, reporter& report) {
  const auto images =
      open_images(w.source, picture_colour::as_stored, show_opening(report.tasks(), w.source));
  progress shown(report, "mean", w.out, images->size());
  const auto mean = mean_of(*images, [&](std::uint64_t done) { shown.at(done); });
  write_mean(w.out, mean);
  std::vector<std::string> texts;
  json_event result;
  result.count("images", images->size()).text("shape", to_string(mean.shape));
  const auto means = channel_means(mean);
  json_array list;
  for (const double m : means) {
    char number[32];
    std::snprintf(number, sizeof number, "%.6g", m);
    texts.emplace_back(number);
    list.put(json_value{number});
  }
  result.json("channel_means", {list.text()});
  shown.done(plural(images->size(), "image") + " of " + to_string(mean.shape), result);
  for (std::size_t c = 0; c < texts.size(); ++c)
    report.remark("mean_value channel [" + std::to_string(c) + "]: " + texts[c]);
  return 0;
}

}  // namespace

verb add_mean(CLI::App& app) {
  const auto w = std::make_shared<mean_words>();
  auto* mean = app.add_subcommand("mean",
                                  "Write the mean image, as Caffe's compute_image_mean does, "
                                  "and say each channel's mean");
  mean->add_option("source,--source", w->source,
                   "LMDB, LevelDB, IDX images file or batch of a CIFAR")
      ->required();
  mean->add_option("out,--out", w->out, "File to write: mean.binaryproto")->required();
  mean->footer("Example\n  poseidon-data mean train_lmdb mean.binaryproto");
  return {mean, [w](reporter& report) { return make_mean(*w, report); }};
}

}  // namespace poseidon::app
