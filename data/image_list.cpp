#include "data/image_list.hpp"

#include "data/epoch_order.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace poseidon {
namespace {
namespace fs = std::filesystem;

struct line {
  std::string path;
  std::int32_t label = 0;
  std::size_t number = 0;  ///< in the list, from 1
};

std::vector<line> read_list(const fs::path& list) {
  std::ifstream file(list);
  if (!file || fs::is_directory(list))
    throw std::runtime_error(list.string() + ": no such list of images.");
  std::vector<line> lines;
  std::string text;
  for (std::size_t number = 1; std::getline(file, text); ++number) {
    while (!text.empty() && (text.back() == '\r' || text.back() == ' ' || text.back() == '\t'))
      text.pop_back();
    if (text.empty()) continue;
    line one{{}, 0, number};
    const auto space = text.find_last_of(" \t");
    const auto* end = text.data() + text.size();
    const auto label = space == std::string::npos
                           ? std::from_chars_result{end, std::errc::invalid_argument}
                           : std::from_chars(text.data() + space + 1, end, one.label);
    if (label.ec != std::errc{} || label.ptr != end)
      throw std::runtime_error(list.string() + ":" + std::to_string(number) + ": \"" + text +
                               "\" is no path and label. Write: path/to/image.jpg 7");
    one.path = text.substr(0, space);
    lines.push_back(std::move(one));
  }
  if (lines.empty())
    throw std::runtime_error(list.string() + ": a list without images; a source needs one.");
  return lines;
}

class image_list final : public image_store {
 public:
  image_list(const fs::path& list, const image_list_options& options)
      : list_(list), options_(options), lines_(read_list(list)) {
    if ((options.height > 0) != (options.width > 0) || options.height < 0 || options.width < 0)
      throw std::runtime_error("new_height is " + std::to_string(options.height) +
                               " and new_width " + std::to_string(options.width) +
                               ". Give both, or none.");
    if (options.order_seed) {
      std::vector<line> in_order;
      const auto order = shuffled(lines_.size(), {*options.order_seed, 0, 0}, 0);
      for (const auto n : *order) in_order.push_back(std::move(lines_[n]));
      lines_ = std::move(in_order);
    }
    image_scratch scratch;
    shape_ = shape_of(get(0, scratch));
  }
  std::uint64_t size() const override { return lines_.size(); }
  const shape& image_shape() const override { return shape_; }
  std::string key(std::uint64_t n) const override { return lines_[n].path; }
  std::string name(std::uint64_t n) const override { return lines_[n].path; }
  std::string describe() const override { return "list of images"; }
  std::string where(std::uint64_t n) const override {
    return list_.string() + ":" + std::to_string(lines_[n].number) + ": \"" + lines_[n].path + "\"";
  }
  image get(std::uint64_t n, image_scratch& scratch) const override {
    const auto name = options_.root + lines_[n].path;
    try {
      read_whole(options_.locate ? options_.locate(name) : fs::path(name), scratch.record);
      auto p = decode_picture(scratch.record, options_.colour);
      if (options_.height > 0) p = resize(p, options_.height, options_.width);
      to_planes(p, scratch.bytes);
      return {scratch.bytes, {}, lines_[n].label, {p.channels, p.height, p.width}};
    } catch (const std::runtime_error& e) {
      throw std::runtime_error(where(n) + " " + e.what() + ".");
    }
  }

 private:
  fs::path list_;
  image_list_options options_;
  std::vector<line> lines_;
  shape shape_;
};

}  // namespace

void read_whole(const fs::path& path, std::vector<std::uint8_t>& to) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error(std::string("cannot be opened: ") + std::strerror(errno));
  if (fs::is_directory(path)) throw std::runtime_error("is a folder");
  const auto size = file.tellg();
  to.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size())))
    throw std::runtime_error("cannot be read");
}

std::shared_ptr<const image_store> open_image_list(const fs::path& list,
                                                   const image_list_options& options) {
  return std::make_shared<image_list>(list, options);
}

}  // namespace poseidon
