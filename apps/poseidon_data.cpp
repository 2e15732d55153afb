// poseidon-data - makes and inspects what nets train on: LMDBs of Datum and mean images.
#include "apps/data/progress.hpp"
#include "data/convert.hpp"
#include "data/image_store.hpp"
#include "data/mean_file.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace {
namespace fs = std::filesystem;
using namespace poseidon;

void convert_to(const image_store& images, const fs::path& out, bool force) {
  app::progress shown("convert " + out.string(), images.size());
  convert(images, out, {force, [&](std::uint64_t done) { shown.at(done); }});
  shown.done(std::to_string(images.size()) + " images of " + to_string(images.image_shape()));
}

void convert_cifar10(const fs::path& in, const fs::path& out, bool force) {
  std::vector<fs::path> train;
  for (int i = 1; i <= 5; ++i) train.push_back(in / ("data_batch_" + std::to_string(i) + ".bin"));
  // Both are opened before anything is written.
  const auto train_images = open_cifar10(train);
  const auto test_images = open_cifar10({in / "test_batch.bin"});
  convert_to(*train_images, out / "cifar10_train_lmdb", force);
  convert_to(*test_images, out / "cifar10_test_lmdb", force);
}

void make_mean(const fs::path& source, const fs::path& out) {
  const auto images = open_images(source);
  app::progress shown("mean " + out.string(), images->size());
  const auto mean = mean_of(*images, [&](std::uint64_t done) { shown.at(done); });
  write_mean(out, mean);
  shown.done(std::to_string(images->size()) + " images of " + to_string(mean.shape));
}

/// Reads every record, so that "info" also answers whether all of them can be read.
void print_info(const fs::path& source) {
  const auto images = open_images(source);
  std::map<std::int32_t, std::uint64_t> labels;
  std::vector<float> scratch;
  bool floats = false;
  for (std::uint64_t n = 0; n < images->size(); ++n) {
    const auto one = images->get(n, scratch);
    ++labels[one.label];
    floats = floats || !one.floats.empty();
  }
  std::printf("%s: %s\n", source.c_str(), images->describe().c_str());
  std::printf("records  %llu\n", static_cast<unsigned long long>(images->size()));
  std::printf("shape    %s %s\n", to_string(images->image_shape()).c_str(),
              floats ? "float" : "uint8");
  std::printf("keys     %s ... %s\n", images->key(0).c_str(),
              images->key(images->size() - 1).c_str());
  std::printf("labels   %zu different, %d ... %d\n", labels.size(), labels.begin()->first,
              labels.rbegin()->first);
  if (labels.size() > 20) return;
  for (const auto& [label, count] : labels)
    std::printf("         %4d  %llu\n", label, static_cast<unsigned long long>(count));
}
}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Makes and inspects what nets train on: LMDBs of Datum and mean images.",
               "poseidon-data"};
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  poseidon-data convert mnist --images train-images-idx3-ubyte.gz --labels "
      "train-labels-idx1-ubyte.gz --out train_lmdb\n"
      "  poseidon-data convert cifar10 --in cifar-10-batches-bin --out data\n"
      "  poseidon-data mean --source train_lmdb --out mean.binaryproto\n"
      "  poseidon-data info train_lmdb\n"
      "Exit code: 0, or 2 for wrong use and for files that cannot be read or written.");

  std::string images, labels, in, out, source;
  bool force = false;
  auto* convert_command =
      app.add_subcommand("convert", "Write images and labels as an LMDB of Datum");
  convert_command->require_subcommand(1);
  auto* mnist =
      convert_command->add_subcommand("mnist", "From IDX files (MNIST and its kind), plain or .gz");
  mnist->add_option("--images", images, "IDX file of images")->required();
  mnist->add_option("--labels", labels, "IDX file of labels")->required();
  auto* cifar10 = convert_command->add_subcommand("cifar10", "From CIFAR-10's binary version");
  cifar10->add_option("--in", in, "Folder with data_batch_1.bin ... and test_batch.bin")
      ->required();
  for (auto* command : {mnist, cifar10}) {
    command->add_option("--out", out, "Folder to make")->required();
    command->add_flag("--force", force, "Replace an LMDB that is there already");
  }
  auto* mean =
      app.add_subcommand("mean", "Write the mean image, as Caffe's compute_image_mean does");
  mean->add_option("--source", source, "LMDB, IDX images file or CIFAR-10 batch")->required();
  mean->add_option("--out", out, "File to write: mean.binaryproto")->required();
  auto* info = app.add_subcommand("info", "Read every record of a source and say what is in it");
  info->add_option("source", source, "LMDB, IDX images file or CIFAR-10 batch")->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    if (*mnist) convert_to(*open_idx(images, labels), out, force);
    if (*cifar10) convert_cifar10(in, out, force);
    if (*mean) make_mean(source, out);
    if (*info) print_info(source);
    if (std::fflush(stdout) != 0) throw std::runtime_error("standard output: cannot write to it.");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "poseidon-data: %s\n", e.what());
    return 2;
  }
  return 0;
}
