// cpu/layers/hdf5_output.cpp - HDF5Output: bottom 0 into the dataset "data" of a file, bottom 1 into "label",
// both of four axes as Caffe writes them. Caffe stops at the second pass; here each pass adds its
// samples. The file is made in the first pass, and whole after every one.
#include "cpu/layer.hpp"
#include "models/files/hdf5_append.hpp"

#include <optional>

namespace poseidon::cpu {
namespace {

class hdf5_output_kernel final : public forward_only {
 public:
  explicit hdf5_output_kernel(const layer_context& c)
      : path_(c.layer.spec.hdf5_output_param().file_name()) {
    if (path_.empty()) c.refuse("has no hdf5_output_param.file_name.");
    for (std::size_t i = 0; i < 2; ++i) {
      auto s = c.bottom_shape(i);
      if (s.empty() || s.size() > 4)
        c.refuse("bottom " + std::to_string(i) + " is " + to_string(s) +
                 "; HDF5Output writes blobs of 1 to 4 axes.");
      s.resize(4, 1);
      bottoms_.push_back({&c.bottom(i), s});
    }
    if (bottoms_[0].extents[0] != bottoms_[1].extents[0])
      c.refuse("bottom 0 has " + std::to_string(bottoms_[0].extents[0]) +
               " samples, bottom 1 has " + std::to_string(bottoms_[1].extents[0]) + ".");
  }

  void forward(const pass&) override {
    if (!file_) file_.emplace(path_);
    for (std::size_t i = 0; i < 2; ++i) {
      const auto& b = bottoms_[i];
      file_->append(i == 0 ? "data" : "label", b.extents, {b.blob->data, b.blob->values()});
    }
  }

 private:
  struct written {
    const cpu_blob* blob;
    shape extents;
  };
  std::string path_;
  std::vector<written> bottoms_;
  std::optional<hdf5_appender> file_;
};

}  // namespace

std::unique_ptr<kernel> make_hdf5_output(const layer_context& c) {
  return std::make_unique<hdf5_output_kernel>(c);
}

}  // namespace poseidon::cpu
