#include "apps/data/feature_writer.hpp"

#include "apps/data/npy_file.hpp"
#include "data/database.hpp"
#include "data/new_file.hpp"
#include "models/caffe.hpp"
#include "models/files/hdf5_append.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace poseidon::app {
namespace {
namespace fs = std::filesystem;

constexpr std::uint64_t piece_values = 1 << 18;  // values are written in pieces of 1 MiB

class database_features final : public feature_writer {
 public:
  database_features(const feature_target& target, database_kind kind)
      : next_(target.first),
        writer_(make_database(kind, target.path, limits_of(target), target.replace)) {
    auto s = target.row;
    if (s.size() > 3) s = {count(s)};  // a Datum has three axes
    s.resize(3, 1);
    datum_.set_channels(static_cast<std::int32_t>(s[0]));
    datum_.set_height(static_cast<std::int32_t>(s[1]));
    datum_.set_width(static_cast<std::int32_t>(s[2]));
  }
  void add(std::span<const float> values, std::int32_t label) override {
    datum_.set_label(label);
    datum_.mutable_float_data()->Assign(values.begin(), values.end());
    char key[24];
    std::snprintf(key, sizeof key, "%010llu", static_cast<unsigned long long>(next_++));
    writer_->put(key, datum_.SerializeAsString());
  }
  void seal() override { writer_->seal(); }
  void finish() override { writer_->finish(); }

 private:
  static database_limits limits_of(const feature_target& t) {
    constexpr std::uint64_t of_a_value = 5, of_the_rest = 64;
    return {t.rows, t.rows * (static_cast<std::uint64_t>(count(t.row)) * of_a_value + of_the_rest)};
  }
  std::uint64_t next_;
  ::caffe::Datum datum_;
  std::unique_ptr<record_writer> writer_;
};

shape with_rows(std::uint64_t rows, const shape& row) {
  shape all{static_cast<std::int64_t>(rows)};
  all.insert(all.end(), row.begin(), row.end());
  return all;
}

std::span<const float> view_of(const std::vector<float>& values) {
  return values;
}
std::string_view view_of(const std::string& text) {
  return text;
}

/// A file that is written in pieces.
template <class Waiting>
class features_in_pieces : public feature_writer {
 public:
  void seal() final {
    write();
    file_.seal();
  }
  void finish() final {
    seal();
    file_.finish();
  }

 protected:
  explicit features_in_pieces(const feature_target& target) : file_(target.path, target.replace) {}
  void write_when_enough() {
    if (waiting_.size() >= piece_values) write();
  }
  new_file file_;
  Waiting waiting_;

 private:
  void write() {
    file_.write(view_of(waiting_));
    waiting_.clear();
  }
};

class npy_features final : public features_in_pieces<std::vector<float>> {
 public:
  explicit npy_features(const feature_target& target) : features_in_pieces(target) {
    file_.write(npy_header(with_rows(target.rows, target.row)));
  }
  void add(std::span<const float> values, std::int32_t) override {
    waiting_.insert(waiting_.end(), values.begin(), values.end());
    write_when_enough();
  }
};

class csv_features final : public features_in_pieces<std::string> {
 public:
  explicit csv_features(const feature_target& target) : features_in_pieces(target) {}
  void add(std::span<const float> values, std::int32_t label) override {
    waiting_ += std::to_string(label);
    for (const float v : values) waiting_ += "," + plain_number(v);
    waiting_ += '\n';
    write_when_enough();
  }
};

/// HDF5 writes the file itself: it is filled under a temporary name in the target's folder and then renamed.
class hdf5_features final : public feature_writer {
 public:
  explicit hdf5_features(const feature_target& target)
      : aside_(target.path, target.replace),
        file_(std::make_unique<hdf5_appender>(aside_.partial())),
        row_(target.row) {}
  void add(std::span<const float> values, std::int32_t label) override {
    waiting_.insert(waiting_.end(), values.begin(), values.end());
    labels_.push_back(static_cast<float>(label));
    if (waiting_.size() >= piece_values) write();
  }
  void seal() override {
    write();
    file_.reset();
    aside_.seal();
  }
  void finish() override {
    seal();
    aside_.finish();
  }

 private:
  void write() {
    if (labels_.empty()) return;
    file_->append("features", with_rows(labels_.size(), row_), waiting_);
    file_->append("label", with_rows(labels_.size(), {}), labels_);
    waiting_.clear();
    labels_.clear();
  }
  new_file aside_;  // reserves the temporary name, and removes the file after a failure
  std::unique_ptr<hdf5_appender> file_;
  shape row_;
  std::vector<float> waiting_, labels_;
};

void append_file(const fs::path& from, std::size_t begin, new_file& to) {
  std::ifstream file(from, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(begin));
  std::string piece(std::size_t{1} << 20, '\0');
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    to.write(std::string_view(piece).substr(0, static_cast<std::size_t>(file.gcount())));
  }
  if (file.bad()) throw std::runtime_error(from.string() + ": cannot be read.");
}

void require_rows_like(const fs::path& part, const shape& have, const fs::path& first,
                       const shape& wanted) {
  if (!have.empty() && !wanted.empty() &&
      std::equal(have.begin() + 1, have.end(), wanted.begin() + 1, wanted.end()))
    return;
  throw std::runtime_error(part.string() + " is " + to_string(have) + ", " + first.string() +
                           " is " + to_string(wanted) +
                           ": their rows differ, so they are no parts of one whole.");
}

std::uint64_t merge_npy(const std::vector<fs::path>& parts, const fs::path& out, bool replace) {
  std::vector<npy_file> headers;
  shape all;
  for (const auto& part : parts) {
    headers.push_back(read_npy_header(part));
    const auto& one = headers.back();
    if (one.kind != "<f4" || one.column_major)
      throw std::runtime_error(part.string() + ": an array of " + one.kind +
                               (one.column_major ? " in Fortran's order" : "") +
                               "; parts that extract has written are of <f4 in C order.");
    require_rows_like(part, one.extents, parts.front(), headers.front().extents);
    if (all.empty()) all = with_rows(0, {one.extents.begin() + 1, one.extents.end()});
    all[0] += one.extents[0];
  }
  new_file file(out, replace);
  file.write(npy_header(all));
  for (std::size_t p = 0; p < parts.size(); ++p)
    append_file(parts[p], headers[p].header_bytes, file);
  file.finish();
  return static_cast<std::uint64_t>(all[0]);
}

std::uint64_t merge_hdf5(const std::vector<fs::path>& parts, const fs::path& out, bool replace) {
  shape first;
  std::uint64_t rows = 0;
  std::unique_ptr<feature_writer> writer;
  for (const auto& part : parts) {
    const hdf5_reader file(part);
    std::vector<float> values, labels;
    const auto extents = file.read("features", values);
    (void)file.read("label", labels);
    if (first.empty()) first = extents;
    require_rows_like(part, extents, parts.front(), first);
    const shape row(extents.begin() + 1, extents.end());
    if (writer == nullptr) writer = make_feature_writer({"hdf5", out, row, 0, 0, replace});
    const auto each = static_cast<std::size_t>(count(row));
    if (labels.size() != static_cast<std::size_t>(extents[0]))
      throw std::runtime_error(part.string() + ": " + std::to_string(extents[0]) + " rows and " +
                               std::to_string(labels.size()) + " labels.");
    for (std::size_t n = 0; n < labels.size(); ++n, ++rows)
      writer->add(std::span(values).subspan(n * each, each), static_cast<std::int32_t>(labels[n]));
  }
  writer->finish();
  return rows;
}

std::uint64_t merge_csv(const std::vector<fs::path>& parts, const fs::path& out, bool replace) {
  new_file file(out, replace);
  std::uint64_t rows = 0;
  for (const auto& part : parts) {
    std::ifstream in(part);
    if (!in) throw std::runtime_error(part.string() + ": cannot be read.");
    for (std::string line; std::getline(in, line); ++rows) {
      if (in.eof())
        throw std::runtime_error(part.string() + ": its last line is cut short. Copy it again.");
      file.write(line + "\n");
    }
  }
  file.finish();
  return rows;
}

}  // namespace

const std::vector<std::string>& feature_formats() {
  static const std::vector<std::string> known{"lmdb", "leveldb", "npy", "csv", "hdf5"};
  return known;
}

std::unique_ptr<feature_writer> make_feature_writer(const feature_target& target) {
  if (target.format == "npy") return std::make_unique<npy_features>(target);
  if (target.format == "csv") return std::make_unique<csv_features>(target);
  if (target.format == "hdf5") return std::make_unique<hdf5_features>(target);
  return std::make_unique<database_features>(
      target, target.format == "leveldb" ? database_kind::leveldb : database_kind::lmdb);
}

std::uint64_t merge_features(const std::vector<fs::path>& parts, const fs::path& out,
                             bool replace) {
  if (is_npy(parts.front())) return merge_npy(parts, out, replace);
  if (is_hdf5(parts.front())) return merge_hdf5(parts, out, replace);
  std::ifstream file(parts.front());
  std::string line;
  if (std::getline(file, line) && !line.empty() &&
      line.find_first_not_of("0123456789+-.,eEinfa") == std::string::npos)
    return merge_csv(parts, out, replace);
  throw std::runtime_error(parts.front().string() +
                           ": no part of anything that partition or extract writes: neither LMDB, "
                           "LevelDB, .npy, HDF5 nor lines of numbers.");
}

}  // namespace poseidon::app
