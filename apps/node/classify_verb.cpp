// apps/node/classify_verb.cpp - poseidon-node classify: what a trained net sees in pictures, as Caffe's classification example.
#include "apps/bare/feature_run.hpp"
#include "apps/bare/picture_options.hpp"
#include "apps/cli.hpp"
#include "apps/node/verbs.hpp"
#include "apps/run_app.hpp"
#include "apps/terminal/figures.hpp"
#include "models/first_bytes.hpp"
#include "models/solver/solver_file.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <thread>

namespace poseidon::app {

namespace {

constexpr int pictures_left_out = 1;  ///< exit code: the others are classified

struct classify_words {
  std::string model, weights, labels, blob;
  picture_words prepare;
  std::vector<std::string> pictures;
  std::uint64_t top = 5;
  bool center_only = false;
  std::uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
};

/// A line for each label, as in synset_words.txt. Empty: none were given.
std::vector<std::string> read_labels(const std::string& path) {
  std::vector<std::string> labels;
  if (path.empty()) return labels;
  if (std::filesystem::is_directory(path))
    throw spec_error("--labels " + path +
                     ": this is a folder. Name a text file with a line for each class.");
  std::ifstream file(path);
  if (!file) throw spec_error("--labels " + path + ": there is no such file.");
  skip_byte_order_mark(file);
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    labels.push_back(line);
  }
  while (!labels.empty() && labels.back().empty()) labels.pop_back();
  if (labels.empty())
    throw spec_error("--labels " + path + ": there is no label in it. Give a line for each class.");
  return labels;
}

class classification {
 public:
  classification(const classify_words& words, reporter& out);
  /// Returns  the exit code.
  int run();

 private:
  void add(const feature_batch& batch, std::uint64_t first_sample);
  void report(std::uint64_t picture);

  const classify_words& words_;
  reporter& out_;
  std::vector<std::string> labels_;
  std::vector<std::filesystem::path> files_;
  std::shared_ptr<const picture_source> source_;
  std::unique_ptr<feature_run> net_;
  std::size_t classes_ = 0;
  std::vector<double> sums_;  // over the crops of the picture in work
  std::uint64_t left_out_ = 0;
  bool warned_ = false;
  std::atomic<std::uint64_t> done_{0};
};

classification::classification(const classify_words& words, reporter& out)
    : words_(words), out_(out), labels_(read_labels(words.labels)) {
  files_ = find_pictures(words.pictures);
  feature_request request;
  request.model = words.model;
  request.weights = split_paths(words.weights);
  if (!words.blob.empty()) request.blobs = {words.blob};
  request.lanes = words.threads;
  request.input = [&](const shape& sample) {
    auto pictures = picture_request_of(words.prepare);
    pictures.files = files_;
    pictures.oversample = !words.center_only;
    pictures.may_skip = true;
    source_ = std::make_shared<picture_source>(std::move(pictures), sample);
    return source_;
  };
  net_ = std::make_unique<feature_run>(request);
  classes_ = static_cast<std::size_t>(count(net_->row_shapes().front()));
  if (!labels_.empty() && labels_.size() != classes_)
    throw spec_error("--labels " + words.labels + " has " + plural(labels_.size(), "label") +
                     ", but the net's blob \"" + net_->blobs().front() + "\" has " +
                     std::to_string(classes_) + " classes. Give a line for each.");
  sums_.assign(classes_, 0);
}

int classification::run() {
  out_.remark(source_->describe());
  const auto shown = out_.working({"classifying", files_.size(), [this] { return done_.load(); }});
  const auto batches = (source_->size() + net_->batch() - 1) / net_->batch();
  net_->run(0, batches, [&](std::uint64_t number, const feature_batch& batch) {
    add(batch, number * net_->batch());
  });
  if (left_out_ == 0) return 0;
  out_.warning(std::to_string(left_out_) + " of " + plural(files_.size(), "picture") +
               " could not be read and are left out; the lines above say why.");
  return pictures_left_out;
}

void classification::add(const feature_batch& batch, std::uint64_t first_sample) {
  const auto crops = source_->crops();
  const auto rows = std::min(net_->batch(), source_->size() - first_sample);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const auto sample = first_sample + row;
    for (std::size_t c = 0; c < classes_; ++c)
      sums_[c] +=
          static_cast<double>(batch.values[0][row * classes_ + c]) / static_cast<double>(crops);
    if ((sample + 1) % crops != 0) continue;
    report(sample / crops);
    std::fill(sums_.begin(), sums_.end(), 0.0);
    done_.store(sample / crops + 1);
  }
}

void classification::report(std::uint64_t picture) {
  const auto file = files_[picture].string();
  if (const auto why = source_->failure(picture); !why.empty()) {
    ++left_out_;
    return out_.warning("left out: " + why);
  }
  if (const auto what = source_->warning(picture); !what.empty()) out_.warning(what);
  const auto all = std::accumulate(sums_.begin(), sums_.end(), 0.0);
  if (!warned_ && std::abs(all - 1) > 0.01) {
    warned_ = true;
    out_.warning("the values of blob \"" + net_->blobs().front() + "\" add up to " +
                 number(all, "%.4g") +
                 ", so they are no probabilities: a Softmax layer at the net's end makes them so.");
  }
  std::vector<std::size_t> order(classes_);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto shown = std::min<std::size_t>(words_.top, classes_);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return sums_[a] != sums_[b] ? sums_[a] > sums_[b] : a < b;
                    });
  out_.result(file);
  json_array top;
  for (std::size_t t = 0; t < shown; ++t) {
    const auto c = order[t];
    const auto label = labels_.empty() ? "class " + std::to_string(c) : labels_[c];
    out_.result("  " + number(sums_[c], "%.4f") + "  " + label);
    json_event one;
    one.count("class", c).number("probability", sums_[c]);
    if (!labels_.empty()) one.text("label", label);
    top.put(json_value{one.line()});
  }
  out_.event(json_event("classified").text("picture", file).json("top", {top.text()}));
}

}  // namespace

int classify_verb(int argc, char** argv) {
  classify_words w;
  command_line app("Says what a trained net sees in pictures: the most probable classes of each.",
                   "poseidon-node classify");
  app.footer(
      "Examples\n"
      "  poseidon-node classify --model deploy.prototxt --weights net.caffemodel --mean "
      "mean.binaryproto --labels synset_words.txt cat.jpg\n"
      "  poseidon-node classify --model models/zoo/lenet/deploy.prototxt --weights "
      "lenet_iter_2300.caffemodel --scale 0.00390625 digits/\n"
      "Exit codes: 0; 1 when pictures could not be read and are left out; 2 wrong use or a bad "
      "file.");
  app.add_option("--model", w.model, "deploy net: a prototxt with an Input layer")->required();
  app.add_option("--weights", w.weights,
                 ".caffemodel files with commas between them, copied by layer name")
      ->required();
  app.add_option("--labels", w.labels, "text file with a line for each class")
      ->default_str("classes are shown by number");
  add_preparation_options(app, w.prepare);
  app.add_flag("--center-only", w.center_only,
               "one crop from the centre instead of the mean of ten (corners and centre, and their "
               "mirror images)");
  app.add_option("--top", w.top, "how many classes of each picture are shown")
      ->check(positive_number);
  app.add_option("--blob", w.blob, "blob with a value for each class")
      ->default_str("the net's output");
  app.add_option("--threads", w.threads, "batches at a time")
      ->check(CLI::Range(1, 1024))
      ->default_str("the number of cores");
  app.add_option("pictures", w.pictures,
                 std::string("pictures (") + picture_endings + "), and folders of them")
      ->required();
  output_words words;
  add_output_options(app, words);
  if (!parsed(app, argc, argv)) return 0;
  reporter out(words);
  int code = 0;
  try {
    code = classification(w, out).run();
  } catch (const std::exception& e) {
    out.end(exit_code_of(e), e.what());
    throw;
  }
  out.end(code, code == 0 ? "" : "pictures were left out");
  return code;
}

}  // namespace poseidon::app
