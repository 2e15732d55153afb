// poseidon-data - makes and inspects what nets train on: databases of Datum and mean images.
#include "apps/data/progress.hpp"
#include "data/convert.hpp"
#include "data/image_list.hpp"
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

void convert_to(const image_store& images, const fs::path& out, convert_options options) {
  app::progress shown("convert " + out.string(), images.size());
  options.progress = [&](std::uint64_t done) { shown.at(done); };
  convert(images, out, options);
  shown.done(std::to_string(images.size()) + " images of " + to_string(images.image_shape()));
}

void convert_cifar10(const fs::path& in, const fs::path& out, const convert_options& options) {
  std::vector<fs::path> train;
  for (int i = 1; i <= 5; ++i) train.push_back(in / ("data_batch_" + std::to_string(i) + ".bin"));
  // Both are opened before anything is written.
  const auto train_images = open_cifar10(train);
  const auto test_images = open_cifar10({in / "test_batch.bin"});
  const std::string kind = options.kind == database_kind::lmdb ? "lmdb" : "leveldb";
  convert_to(*train_images, out / ("cifar10_train_" + kind), options);
  convert_to(*test_images, out / ("cifar10_test_" + kind), options);
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
  image_scratch scratch;
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
  CLI::App app{"Makes and inspects what nets train on: databases of Datum and mean images.",
               "poseidon-data"};
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  poseidon-data convert mnist --images train-images-idx3-ubyte.gz --labels "
      "train-labels-idx1-ubyte.gz --out train_lmdb\n"
      "  poseidon-data convert cifar10 --in cifar-10-batches-bin --out data\n"
      "  poseidon-data convert images train.txt --root photos/ --resize-height 256 --resize-width "
      "256 --shuffle --out train_lmdb\n"
      "  poseidon-data convert db train_leveldb --out train_lmdb\n"
      "  poseidon-data mean --source train_lmdb --out mean.binaryproto\n"
      "  poseidon-data info train_lmdb\n"
      "Exit code: 0, or 2 for wrong use and for files that cannot be read or written.");

  std::string images, labels, in, out, source, backend = "lmdb", encoding;
  image_list_options list;
  bool gray = false, shuffle = false;
  std::uint64_t seed = 0;
  convert_options how;
  auto* convert_command =
      app.add_subcommand("convert", "Write images and labels as a database of Datum");
  convert_command->require_subcommand(1);
  auto* mnist =
      convert_command->add_subcommand("mnist", "From IDX files (MNIST and its kind), plain or .gz");
  mnist->add_option("--images", images, "IDX file of images")->required();
  mnist->add_option("--labels", labels, "IDX file of labels")->required();
  auto* cifar10 = convert_command->add_subcommand("cifar10", "From CIFAR-10's binary version");
  cifar10->add_option("--in", in, "Folder with data_batch_1.bin ... and test_batch.bin")
      ->required();
  auto* pictures = convert_command->add_subcommand(
      "images", "From a list of JPEG, PNG, PPM or PGM files, as Caffe's convert_imageset");
  pictures->add_option("list", source, "Text file, a line for each image: path label")->required();
  pictures->add_option("--root", list.root, "Put before each path; end it with a slash");
  pictures->add_option("--resize-height", list.height, "Resize to this many rows")
      ->check(CLI::PositiveNumber);
  pictures->add_option("--resize-width", list.width, "Resize to this many columns")
      ->check(CLI::PositiveNumber);
  pictures->add_flag("--gray", gray, "One channel instead of blue, green, red");
  pictures->add_flag("--shuffle", shuffle, "Write in a random order");
  pictures->add_option("--seed", seed, "Chooses that order");
  auto* database = convert_command->add_subcommand(
      "db", "From another database: LevelDB to LMDB, encoded pictures to pixels, or back");
  database->add_option("source", source, "LMDB or LevelDB folder")->required();
  for (auto* command : {mnist, cifar10, pictures, database}) {
    command->add_option("--out", out, "Folder to make")->required();
    command->add_flag("--force", how.replace, "Replace a database that is there already");
    command->add_option("--backend", backend, "lmdb, which is the default, or leveldb")
        ->check(CLI::IsMember({"lmdb", "leveldb"}));
    command->add_option("--encoded", encoding, "Keep pictures packed: png, or jpg (lossy)")
        ->check(CLI::IsMember({"png", "jpg"}));
  }
  auto* mean =
      app.add_subcommand("mean", "Write the mean image, as Caffe's compute_image_mean does");
  mean->add_option("--source", source, "LMDB, LevelDB, IDX images file or CIFAR-10 batch")
      ->required();
  mean->add_option("--out", out, "File to write: mean.binaryproto")->required();
  auto* info = app.add_subcommand("info", "Read every record of a source and say what is in it");
  info->add_option("source", source, "LMDB, LevelDB, IDX images file or CIFAR-10 batch")
      ->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help
    std::fprintf(stderr, "poseidon-data: %s; poseidon-data --help shows how.\n", e.what());
    return 2;
  }
  try {
    if (backend == "leveldb") how.kind = database_kind::leveldb;
    if (!encoding.empty())
      how.encoding = encoding == "png" ? datum_encoding::png : datum_encoding::jpeg;
    if (gray) list.colour = picture_colour::gray;
    if (shuffle) list.order_seed = seed;
    if (*mnist) convert_to(*open_idx(images, labels), out, how);
    if (*cifar10) convert_cifar10(in, out, how);
    if (*pictures) convert_to(*open_image_list(source, list), out, how);
    if (*database) convert_to(*open_images(source), out, how);
    if (*mean) make_mean(source, out);
    if (*info) print_info(source);
    if (std::fflush(stdout) != 0) throw std::runtime_error("standard output: cannot write to it.");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "poseidon-data: %s\n", e.what());
    return 2;
  }
  return 0;
}
