#include "data/image_list.hpp"

#include "data/epoch_order.hpp"
#include "data/list_file.hpp"
#include "models/files/file_kind.hpp"
#include "models/first_bytes.hpp"

#include <algorithm>
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
  std::size_t number = 0;  ///< in the list, from 1; 0: not from a list
};

std::string advice_for(const std::string& text) {
  if (text.find('#') != std::string::npos) return no_comments;
  return "Write: path/to/image.jpg 7";
}

std::vector<line> read_list(const fs::path& list) {
  auto file = open_list(
      list, "images", "A list is a text file of lines `path label`; convert images takes folders.");
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
                               "\" is no path and label. " + advice_for(text));
    one.path = text.substr(0, space);
    lines.push_back(std::move(one));
  }
  if (lines.empty())
    throw std::runtime_error(list.string() + ": a list without images; a source needs one.");
  return lines;
}

class image_list final : public image_store {
 public:
  /// `from`: the list or folder, for messages.
  image_list(fs::path from, const image_list_options& options, std::vector<line> lines)
      : from_(std::move(from)), options_(options), lines_(std::move(lines)) {
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
    shape_ = first_shape();
  }
  std::uint64_t size() const override { return lines_.size(); }
  const shape& image_shape() const override { return shape_; }
  std::string key(std::uint64_t n) const override { return lines_[n].path; }
  std::string name(std::uint64_t n) const override { return lines_[n].path; }
  std::string describe() const override { return "list of images"; }
  std::string where(std::uint64_t n) const override {
    const auto& one = lines_[n];
    if (one.number == 0) return (from_ / one.path).string();
    return from_.string() + ":" + std::to_string(one.number) + ": \"" + one.path + "\"";
  }
  image get(std::uint64_t n, image_scratch& scratch) const override {
    const auto name = options_.root + lines_[n].path;
    try {
      read_whole(options_.locate ? options_.locate(name) : fs::path(name), scratch.record);
      auto p = decode_picture(scratch.record, options_.colour);
      auto warning = std::move(p.warning);
      if (options_.height > 0) p = resize(p, options_.height, options_.width);
      to_planes(p, scratch.bytes);
      image one{scratch.bytes, {}, lines_[n].label, {p.channels, p.height, p.width}};
      one.file = scratch.record;
      // A file with a fault is encoded anew: other programs may refuse it.
      one.as_in_file = options_.compare_files && warning.empty() && is_stored_in(scratch.record, p);
      one.warning = std::move(warning);
      return one;
    } catch (const std::runtime_error& e) {
      const bool comment = lines_[n].number > 0 && lines_[n].path.front() == '#';
      throw std::runtime_error(where(n) + " " + e.what() + "." +
                               (comment ? std::string(" ") + no_comments : ""));
    }
  }

 private:
  shape first_shape() const {
    image_scratch scratch;
    std::string reason;
    for (std::uint64_t n = 0; n < size(); ++n) {
      try {
        return shape_of(get(n, scratch));
      } catch (const std::runtime_error& e) {
        if (!options_.may_skip) throw;
        if (reason.empty()) reason = e.what();
      }
    }
    throw std::runtime_error(from_.string() + ": none of its " + std::to_string(size()) +
                             " images can be read. The first: " + reason);
  }
  static bool is_stored_in(std::span<const std::uint8_t> file, const picture& p) {
    try {
      const auto stored = decode_picture(file, picture_colour::as_stored);
      return stored.channels == p.channels && stored.height == p.height &&
             stored.width == p.width && stored.pixels == p.pixels;
    } catch (const std::runtime_error&) {  // 16 bits per value
      return false;
    }
  }

  fs::path from_;
  image_list_options options_;
  std::vector<line> lines_;
  shape shape_;
};

bool is_hidden(const fs::path& path) {
  return path.filename().string().rfind('.', 0) == 0;
}

bool is_picture(const fs::path& path) {
  return is_picture_ending(path.extension().string());
}

/// Paths below `folder`, relative to it, in order; files whose names are not those of pictures go to `others`.
std::vector<std::string> pictures_in(const fs::path& folder, std::uint64_t& others) {
  std::vector<std::string> found;
  fs::recursive_directory_iterator at(folder, fs::directory_options::follow_directory_symlink);
  for (; at != fs::recursive_directory_iterator(); ++at) {
    if (is_hidden(at->path())) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file()) {
      if (is_picture(at->path()))
        found.push_back(at->path().lexically_relative(folder).string());
      else
        ++others;
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

void read_whole(const fs::path& path, std::vector<std::uint8_t>& to) {
  if (const auto kind = kind_if_no_file(path); !kind.empty())
    throw std::runtime_error("is " + kind);
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error(std::string("cannot be opened: ") + std::strerror(errno));
  const auto size = file.tellg();
  to.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size())))
    throw std::runtime_error("cannot be read");
  const std::string_view text(reinterpret_cast<const char*>(to.data()), to.size());
  if (const auto pointer = lfs_pointer(text); !pointer.empty())
    throw std::runtime_error("is " + pointer);
}

std::shared_ptr<const image_store> open_image_list(const fs::path& list,
                                                   const image_list_options& options) {
  return std::make_shared<image_list>(list, options, read_list(list));
}

image_folder open_image_folder(const fs::path& folder, const image_list_options& options) {
  if (!fs::is_directory(folder)) throw std::runtime_error(folder.string() + ": no such folder.");
  image_folder result;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && !is_hidden(entry.path()))
      result.classes.push_back(entry.path().filename().string());
  if (result.classes.empty())
    throw std::runtime_error(
        folder.string() +
        ": no folders in it. Put the pictures of each class into a folder of "
        "its own, or list them with their labels: poseidon-data convert list.");
  std::sort(result.classes.begin(), result.classes.end());
  std::vector<line> lines;
  for (std::size_t label = 0; label < result.classes.size(); ++label) {
    const auto& name = result.classes[label];
    const auto pictures = pictures_in(folder / name, result.other_files);
    if (pictures.empty())
      throw std::runtime_error((folder / name).string() + ": a class without pictures (" +
                               picture_endings + "). Take it away, or put some in.");
    for (const auto& picture : pictures)
      lines.push_back({name + "/" + picture, static_cast<std::int32_t>(label), 0});
  }
  auto from_here = options;
  from_here.root = (folder / "").string();
  from_here.locate = nullptr;
  result.images = std::make_shared<image_list>(folder, from_here, std::move(lines));
  return result;
}

}  // namespace poseidon
