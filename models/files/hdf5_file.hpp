// models/files/hdf5_file.hpp
//
// HDF5 files as Caffe uses them: groups, datasets of numbers with a shape, and strings. Values are
// float32 here, whatever number type the file has. The library is hidden, and loaded when it is first needed; its
// errors become spec_error with the file, the dataset and the library's innermost reason.
//
// As thread-safe as the library, which Debian builds with locks.
#pragma once
#include "models/shape.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace poseidon {

/// By its signature, at the beginning or behind a user block, not by its name.
[[nodiscard]] bool is_hdf5(const std::filesystem::path& path);

/// Opens what reads and writes such files, which only programs do that meet one (hdf5_plugin.hpp). `whose`: the file, or what will make one later.
/// Errors   std::runtime_error with one line, which begins with `whose`: this installation is not whole.
void need_hdf5(const std::string& whose);

/// Closes what an HDF5 identifier names; -1 is nothing.
class hdf5_handle {
 public:
  hdf5_handle() = default;
  hdf5_handle(std::int64_t id, int (*close)(std::int64_t)) : id_(id), close_(close) {}
  hdf5_handle(hdf5_handle&& other) noexcept;
  hdf5_handle& operator=(hdf5_handle&& other) noexcept;
  ~hdf5_handle();
  [[nodiscard]] std::int64_t get() const { return id_; }

 private:
  std::int64_t id_ = -1;
  int (*close_)(std::int64_t) = nullptr;
};

struct hdf5_links {
  std::vector<std::string> groups;
  std::vector<std::string> datasets;
  /// What the library cannot open, and its reason.
  std::vector<std::pair<std::string, std::string>> unreadable;
};

class hdf5_reader {
 public:
  /// Errors   spec_error: missing, a folder, not HDF5, truncated.
  explicit hdf5_reader(const std::filesystem::path& path);
  /// Reads a file from memory; `name` is for messages.
  hdf5_reader(std::span<const std::uint8_t> image, std::string name);

  // Paths begin at the root: "data/conv1/0".
  [[nodiscard]] bool has(const std::string& path) const;
  /// Names in a group ("": the outermost), in the order of the alphabet.   Errors   spec_error: no such group.
  [[nodiscard]] hdf5_links list(const std::string& group) const;
  /// Errors   spec_error: no such dataset; neither integers nor floats; a shape that the bytes of
  ///          the dataset cannot hold.
  [[nodiscard]] shape shape_of(const std::string& dataset) const;
  /// Overwrites `values`.   Returns  the shape.   Errors   as shape_of, and unreadable bytes.
  shape read(const std::string& dataset, std::vector<float>& values) const;
  /// The only value of a dataset.   Errors   as read; several values.
  [[nodiscard]] std::int64_t read_integer(const std::string& dataset) const;
  [[nodiscard]] std::string read_text(const std::string& dataset) const;
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& text) const;
  [[nodiscard]] hdf5_handle open_numbers(const std::string& dataset, shape& extents) const;

  std::string name_;
  hdf5_handle file_;
};

/// Builds an HDF5 file in memory, so that it is written to disk in one piece or not at all.
class hdf5_writer {
 public:
  hdf5_writer();

  // Missing groups of a path are created. Errors   std::invalid_argument: the path is taken, or
  // the number of values is not the shape's.
  void make_group(const std::string& path);
  void write(const std::string& path, const shape& extents, std::span<const float> values);
  /// Shape {1} and 32 bits, as Caffe does; 64 bits for what needs them.
  void write_integer(const std::string& path, std::int64_t value);
  void write_text(const std::string& path, const std::string& text);

  /// The bytes of the file.
  [[nodiscard]] std::vector<char> image() const;

 private:
  hdf5_handle file_;
  hdf5_handle with_groups_;  // a property list: missing groups are made
};

}  // namespace poseidon
