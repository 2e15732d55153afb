// HDF5Data: files in a list, one dataset per top, whole epochs, and the same orders on every node.
#include "data/batch_filler.hpp"
#include "data/source.hpp"
#include "models/files/atomic_file.hpp"
#include "models/files/hdf5_file.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <set>
#include <thread>

using namespace poseidon;
using namespace poseidon::test;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Rows first ... first + rows - 1; a value of "data" is 10 * row + place, "label" is the row.
void make_file(const std::filesystem::path& path, int first, int rows) {
  std::vector<float> data, label;
  for (int r = first; r < first + rows; ++r) {
    for (int i = 0; i < 6; ++i) data.push_back(static_cast<float>(10 * r + i));
    label.push_back(static_cast<float>(r));
  }
  hdf5_writer file;
  file.write("data", {rows, 2, 1, 3}, data);
  file.write("label", {rows}, label);
  write_atomically(path, file.image());
}

::caffe::LayerParameter hdf5_layer(const std::string& source) {
  ::caffe::LayerParameter layer;
  layer.set_name("data");
  layer.set_type("HDF5Data");
  layer.add_top("data");
  layer.add_top("label");
  layer.mutable_hdf5_data_param()->set_source(source);
  layer.mutable_hdf5_data_param()->set_batch_size(4);
  return layer;
}

struct three_files {
  three_files() {
    options.directory = folder.path();
    make_file(folder / "a.h5", 0, 5);
    make_file(folder / "b.h5", 5, 1);
    make_file(folder / "c.h5", 6, 7);
    write_file(folder / "list", "a.h5\nb.h5  c.h5\n");
  }
  temporary_folder folder;
  source_options options;
};

std::vector<int> rows(const sample_source& source, std::uint64_t first, std::int64_t n) {
  batch b;
  fill_batch(source, first, n, b);
  std::vector<int> result;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    CHECK(b.tops[0][6 * i + 5] == 10 * b.tops[1][i] + 5);
    result.push_back(static_cast<int>(b.tops[1][i]));
  }
  return result;
}

}  // namespace

TEST_CASE("hdf5 data: rows of all files in their order, over the end in the middle of a batch") {
  const three_files f;
  const auto layer = hdf5_layer("list");
  const auto source = open_source(layer, here(), f.options);
  CHECK(source->size() == 13);
  CHECK(source->sample_shapes() == std::vector<shape>{{2, 1, 3}, {}});
  CHECK(batch_size(layer, here()) == 4);
  CHECK(rows(*source, 3, 4) == std::vector<int>{3, 4, 5, 6});
  CHECK(rows(*source, 11, 4) == std::vector<int>{11, 12, 0, 1});
  CHECK(rows(*source, 13 * 5, 2) == std::vector<int>{0, 1});
}

TEST_CASE("hdf5 data: shuffle orders files and rows anew each epoch; files stay together") {
  const three_files f;
  auto layer = hdf5_layer("list");
  layer.mutable_hdf5_data_param()->set_shuffle(true);
  const auto source = open_source(layer, here(), f.options);
  std::set<std::vector<int>> orders;
  const auto file_of = [](int row) { return row < 5 ? 0 : row == 5 ? 1 : 2; };
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
    const auto all = rows(*source, 13 * epoch, 13);
    CHECK(std::set<int>(all.begin(), all.end()).size() == 13);
    int changes = 0;
    for (std::size_t i = 1; i < all.size(); ++i) changes += file_of(all[i]) != file_of(all[i - 1]);
    CHECK(changes == 2);
    orders.insert(all);
  }
  CHECK(orders.size() == 8);
  // Four readers, each every fourth batch of one epoch, see each row once, and what one alone sees.
  const auto again = open_source(layer, here(), f.options);
  std::vector<std::vector<int>> seen(4);
  std::vector<std::thread> readers;
  for (std::size_t r = 0; r < 4; ++r)
    readers.emplace_back([&, r] {
      for (std::uint64_t at = r; at < 26; at += 4)
        for (const int row : rows(*again, at, 1)) seen[r].push_back(row);
    });
  for (auto& reader : readers) reader.join();
  for (std::uint64_t at = 0; at < 26; ++at)
    CHECK(std::vector<int>{seen[at % 4][at / 4]} == rows(*source, at, 1));
}

TEST_CASE("hdf5 data: every mistake names layer, file, dataset and both values") {
  const three_files f;
  const auto refused = [&](const ::caffe::LayerParameter& layer) {
    const auto text = complaint([&] { (void)open_source(layer, here(), f.options); });
    CHECK_MESSAGE(text.find("net.prototxt:7: layer \"data\" (HDF5Data): ") == 0, text);
    return text;
  };
  const auto with = [&](const std::string& list) {
    write_file(f.folder / "other", list);
    return refused(hdf5_layer("other"));
  };
  CHECK(has(refused(hdf5_layer("none")), "none: no such list of HDF5 files. Relative names start"));
  CHECK(has(refused(hdf5_layer("a.h5")), "this is an HDF5 file. The source of HDF5Data is a text"));
  CHECK(has(refused(hdf5_layer("")), "no hdf5_data_param.source"));
  CHECK(has(with(" \n"), "a list without files"));
  CHECK(has(with("none.h5"), "none.h5: there is no such file."));
  CHECK(has(with("# all\na.h5"), "\"#\" is no file. A # begins no comment in a list"));
  CHECK(has(with("version https://git-lfs.github.com/spec/v1\n"), "this is a pointer of Git LFS"));
  write_file(f.folder / "cut.h5", read_file(f.folder / "a.h5").substr(0, 900));
  CHECK(has(with("cut.h5"), "cut.h5: the HDF5 file cannot be opened: truncated file"));
  auto layer = hdf5_layer("list");
  layer.set_top(1, "labels");
  CHECK(has(refused(layer), "a.h5: dataset \"labels\" is not in this HDF5 file."));
  layer = hdf5_layer("list");
  layer.mutable_transform_param()->set_scale(2);
  CHECK(has(refused(layer), "has a transform_param, but HDF5Data delivers values as they are"));
  const auto made = [&](const std::string& name, const shape& data, const shape& label) {
    hdf5_writer file;
    file.write("data", data, std::vector<float>(static_cast<std::size_t>(count(data))));
    file.write("label", label, std::vector<float>(static_cast<std::size_t>(count(label))));
    write_atomically(f.folder / name, file.image());
  };
  made("rows.h5", {3, 2, 1, 3}, {4});
  CHECK(has(with("rows.h5"), "dataset \"label\" is 4, but \"data\" has 3 samples"));
  made("shape.h5", {3, 2, 3}, {3});
  CHECK(has(with("a.h5\nshape.h5"),
            "shape.h5: dataset \"data\" is 3x2x3, but a sample of it is "
            "2x1x3 in "));
  made("none.h5", {0, 2, 1, 3}, {0});
  CHECK(has(with("none.h5"), "its first axis has to be samples, and there are none"));
  made("scalar.h5", {1, 2, 1, 3}, {});
  CHECK(has(with("scalar.h5"), "dataset \"label\" is scalar; its first axis has to be samples"));
}

TEST_CASE("memory data: samples that a program hands over, and a clear word where nobody does") {
  ::caffe::LayerParameter layer;
  layer.set_name("in");
  layer.set_type("MemoryData");
  layer.add_top("data");
  layer.add_top("label");
  auto& p = *layer.mutable_memory_data_param();
  p.set_batch_size(2);
  p.set_channels(1);
  p.set_height(1);
  p.set_width(2);
  CHECK(has(complaint([&] { (void)open_source(layer, here(), {}); }),
            "takes its samples from the memory of a program, and this one has none for it. Train"));
  source_options options;
  options.memory["in"] =
      std::make_shared<memory_samples>(memory_samples{{1, 2, 3, 4, 5, 6}, {7, 8, 9}});
  batch b;
  fill_batch(*open_source(layer, here(), options), 2, 2, b);
  CHECK(b.tops[0] == host_values{5, 6, 1, 2});
  CHECK(b.tops[1] == host_values{9, 7});
  CHECK(shapes_from_sources(options)(layer, here()) == std::vector<shape>{{2, 1, 1, 2}, {2}});
  options.memory["in"] = std::make_shared<memory_samples>(memory_samples{{1, 2, 3}, {7, 8}});
  CHECK(has(complaint([&] { (void)open_source(layer, here(), options); }),
            "was given 3 values and 2 labels; each sample is 1x1x2 and one label."));
  p.set_width(0);
  CHECK(has(complaint([&] { (void)open_source(layer, here(), options); }), "a sample is 1x1x0"));
}
