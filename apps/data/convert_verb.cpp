// apps/data/convert_verb.cpp - poseidon-data convert: images and labels of all kinds to databases of Datum.
#include "actors/run/opening_task.hpp"
#include "apps/data/progress.hpp"
#include "apps/data/verbs.hpp"
#include "data/convert.hpp"
#include "data/image_list.hpp"
#include "data/image_store.hpp"
#include "data/new_file.hpp"
#include "models/spec/spec_file.hpp"
#include "models/words.hpp"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>

namespace poseidon::app {
namespace {
namespace fs = std::filesystem;

struct convert_words {
  std::string images, labels, in, out, source, backend = "lmdb", encode_type, class_names;
  std::string which = "fine";
  image_list_options list;
  bool gray = false, shuffle = false, encoded = false, check_size = false, strict = false,
       force = false;
  std::uint64_t seed = 0;
};

convert_options options_of(const convert_words& w) {
  convert_options how;
  how.replace = w.force;
  how.one_shape = w.check_size;
  if (w.backend == "leveldb") how.kind = database_kind::leveldb;
  if (w.encoded) how.encoding = datum_encoding::as_the_file;
  if (w.encode_type == "png") how.encoding = datum_encoding::png;
  if (w.encode_type == "jpg") how.encoding = datum_encoding::jpeg;
  return how;
}

image_list_options list_of(const convert_words& w) {
  auto list = w.list;
  if (w.gray) list.colour = picture_colour::gray;
  if (w.shuffle) list.order_seed = w.seed;
  list.compare_files = w.encoded || !w.encode_type.empty();
  list.may_skip = !w.strict;
  // Caffe joins ROOT and path without a slash, which surprises users who forget it.
  if (!list.root.empty() && fs::is_directory(list.root))
    list.root = (fs::path(list.root) / "").string();
  return list;
}

/// Returns the number of images left out.
std::uint64_t convert_to(const image_store& images, const fs::path& out, convert_options options,
                         reporter& report) {
  progress shown(report, "convert", out.string(), images.size());
  options.progress = [&](std::uint64_t done) { shown.at(done); };
  options.warned = [&](const std::string& what) { report.warning("poseidon-data: " + what); };
  const auto written = convert(images, out, options);
  const auto left_out = images.size() - written;
  shown.done(plural(written, "image") + " of " + to_string(images.image_shape()) +
                 (left_out == 0 ? "" : ", " + std::to_string(left_out) + " left out"),
             json_event()
                 .count("images", written)
                 .count("left_out", left_out)
                 .text("shape", to_string(images.image_shape())));
  return left_out;
}

int convert_files(const image_store& images, const convert_words& w, reporter& report) {
  auto how = options_of(w);
  if (!w.strict)
    how.skipped = [&report](const std::string& why) {
      report.warning("poseidon-data: left out: " + why);
    };
  const auto left_out = convert_to(images, w.out, how, report);
  if (left_out == 0) return 0;
  report.warning("poseidon-data: " + std::to_string(left_out) + " of " +
                 std::to_string(images.size()) + " images could not be read and are not in " +
                 w.out + "; the lines above say why. --strict refuses instead.");
  return incomplete;
}

int convert_folder(const convert_words& w, reporter& report) {
  const auto found = open_image_folder(w.source, list_of(w));
  std::string names;
  for (const auto& name : found.classes) names += name + "\n";
  std::unique_ptr<new_file> file;  // opened before any long work begins
  if (!w.class_names.empty()) file = std::make_unique<new_file>(w.class_names, w.force);
  const int code = convert_files(*found.images, w, report);
  if (file != nullptr) {
    file->write(names);
    file->finish();
  }
  report.remark("labels: 0 (" + found.classes.front() + ") ... " +
                std::to_string(found.classes.size() - 1) + " (" + found.classes.back() + ")");
  if (found.other_files > 0)
    report.remark(plural(found.other_files, "file") + (found.other_files == 1 ? " is" : " are") +
                  " no pictures by their names and were left out");
  return code;
}

/// A folder of pictures or a list of images.
int convert_images(const convert_words& w, reporter& report) {
  if (fs::is_directory(w.source)) return convert_folder(w, report);
  if (!fs::exists(w.source))
    throw spec_error(w.source +
                     ": no such list of images, and no folder of pictures. Relative "
                     "paths start at " +
                     fs::current_path().string() + ".");
  return convert_files(*open_image_list(w.source, list_of(w)), w, report);
}

/// The two halves of a CIFAR; both are opened before anything is written.
int convert_both(const image_store& train, const image_store& test, const std::string& name,
                 const convert_words& w, reporter& report) {
  auto how = options_of(w);
  how.key_digits = 5;  // as Caffe's convert_cifar_data
  const fs::path out(w.out);
  convert_to(train, out / (name + "_train_" + w.backend), how, report);
  convert_to(test, out / (name + "_test_" + w.backend), how, report);
  return 0;
}

int convert_cifar10(const convert_words& w, reporter& report) {
  const fs::path in(w.in);
  std::vector<fs::path> train;
  for (int i = 1; i <= 5; ++i) train.push_back(in / ("data_batch_" + std::to_string(i) + ".bin"));
  const auto train_images = open_cifar10(train);
  return convert_both(*train_images, *open_cifar10({in / "test_batch.bin"}), "cifar10", w, report);
}

int convert_cifar100(const convert_words& w, reporter& report) {
  const fs::path in(w.in);
  const auto label = w.which == "fine" ? cifar100_label::fine : cifar100_label::coarse;
  const auto train = open_cifar100({in / "train.bin"}, label);
  return convert_both(*train, *open_cifar100({in / "test.bin"}, label), "cifar100", w, report);
}

void add_picture_options(CLI::App& to, convert_words& w) {
  to.add_option("--resize-height,--resize_height", w.list.height, "Resize to this many rows")
      ->check(CLI::NonNegativeNumber)
      ->default_str("as they are");
  to.add_option("--resize-width,--resize_width", w.list.width, "Resize to this many columns")
      ->check(CLI::NonNegativeNumber)
      ->default_str("as they are");
  to.add_flag("--gray", w.gray, "One channel instead of blue, green, red");
  to.add_flag("--shuffle", w.shuffle, "Write in a random order");
  to.add_option("--seed", w.seed, "Chooses that order; the same one for the same number");
  to.add_flag("--check-size,--check_size", w.check_size,
              "Refuse images of another size than the first");
  to.add_flag("--strict", w.strict,
              "Refuse when an image cannot be read, instead of leaving it out");
}

void add_common_options(CLI::App& to, convert_words& w) {
  to.add_option("--backend", w.backend, "lmdb or leveldb")
      ->check(CLI::IsMember({"lmdb", "leveldb"}));
  to.add_flag(
      "--encoded", w.encoded,
      "Keep pictures packed: JPEG as JPEG, others as PNG; files as they are where they hold "
      "just these pixels");
  to.add_option("--encode-type,--encode_type", w.encode_type,
                "Keep pictures packed as png, or as jpg (lossy)")
      ->check(CLI::IsMember({"png", "jpg"}));
  to.add_flag("--force", w.force, "Replace a database that is there already");
}

}  // namespace

std::vector<verb> add_convert(CLI::App& app) {
  const auto w = std::make_shared<convert_words>();
  auto* convert = app.add_subcommand("convert", "Write images and labels as a database of Datum");
  convert->require_subcommand(1);
  std::vector<verb> verbs;
  const auto add = [&](const char* name, const char* what, const char* example,
                       int (*run)(const convert_words&, reporter&)) {
    auto* command = convert->add_subcommand(name, what);
    command->footer(std::string("Example\n  poseidon-data convert ") + example);
    verbs.push_back({command, [w, run](reporter& report) { return run(*w, report); }});
    return command;
  };
  auto* mnist = add("mnist", "From IDX files (MNIST and its kind), plain or .gz",
                    "mnist --images train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz "
                    "--out train_lmdb",
                    [](const convert_words& o, reporter& report) {
                      convert_to(*open_idx(o.images, o.labels), o.out, options_of(o), report);
                      return 0;
                    });
  mnist->add_option("--images", w->images, "IDX file of images")->required();
  mnist->add_option("--labels", w->labels, "IDX file of labels")->required();
  auto* cifar10 = add("cifar10", "From CIFAR-10's binary version",
                      "cifar10 --in cifar-10-batches-bin --out data", convert_cifar10);
  cifar10->add_option("--in", w->in, "Folder with data_batch_1.bin ... 5 and test_batch.bin")
      ->required();
  auto* cifar100 =
      add("cifar100", "From CIFAR-100's binary version",
          "cifar100 --in cifar-100-binary --labels coarse --out data", convert_cifar100);
  cifar100->add_option("--in", w->in, "Folder with train.bin and test.bin")->required();
  cifar100->add_option("--labels", w->which, "fine (of 100 classes) or coarse (of 20)")
      ->check(CLI::IsMember({"fine", "coarse"}));
  auto* images =
      add("images",
          "From a folder of JPEG, PNG, WebP, TIFF, BMP, PPM and PGM files, one folder per class",
          "images photos --resize-height 256 --resize-width 256 --shuffle --class-names "
          "classes.txt --out train_lmdb",
          convert_images);
  images
      ->add_option("folder", w->source,
                   "Labels are in the order of its folders' names. A file is taken as a list")
      ->required();
  images->add_option("--class-names", w->class_names,
                     "File to write: a line for each label, its folder's name");
  auto* list = add("list", "From a list of picture files, as Caffe's convert_imageset",
                   "list train.txt --root photos --resize-height 256 --resize-width 256 --shuffle "
                   "--out train_lmdb",
                   [](const convert_words& o, reporter& report) {
                     return convert_files(*open_image_list(o.source, list_of(o)), o, report);
                   });
  list->add_option("list", w->source, "Text file, a line for each image: path label")->required();
  for (auto* command : {images, list}) {
    command->add_option("--root", w->list.root, "Folder from which a list's paths start");
    add_picture_options(*command, *w);
  }
  auto* database =
      add("db", "From another database: LevelDB to LMDB, encoded pictures to pixels, or back",
          "db train_leveldb --out train_lmdb", [](const convert_words& o, reporter& report) {
            convert_to(*open_images(o.source, picture_colour::as_stored,
                                    show_opening(report.tasks(), o.source)),
                       o.out, options_of(o), report);
            return 0;
          });
  database->add_option("source", w->source, "LMDB or LevelDB folder")->required();
  for (const auto& one : verbs) {
    one.command
        ->add_option("--out", w->out,
                     one.command == cifar10 || one.command == cifar100
                         ? "Folder in which the two databases are made"
                         : "Folder to make")
        ->required();
    add_common_options(*one.command, *w);
  }
  return verbs;
}

}  // namespace poseidon::app
