#include "models/files/hdf5_file.hpp"

#include "models/files/file_kind.hpp"
#include "models/files/hdf5_library.hpp"
#include "models/files/hdf5_storage.hpp"
#include "models/first_bytes.hpp"
#include "models/spec/spec_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <sys/stat.h>
#include <utility>

namespace poseidon {

using namespace hdf5;

namespace {

std::string type_name(H5T_class_t type) {
  switch (type) {
    case H5T_STRING:
      return "strings";
    case H5T_COMPOUND:
      return "compounds";
    case H5T_ENUM:
      return "enumerations";
    default:
      return "no numbers";
  }
}

/// After the library has refused to.
std::string why_unreadable(std::int64_t dataset) {
  const auto reason = innermost_reason();
  const auto filter = missing_filter(dataset);
  return filter.empty() ? "cannot be read: " + reason + ". The file is damaged; copy it again."
                        : filter;
}

}  // namespace

hdf5_handle::hdf5_handle(hdf5_handle&& other) noexcept
    : id_(std::exchange(other.id_, -1)), close_(other.close_) {}

hdf5_handle& hdf5_handle::operator=(hdf5_handle&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(close_, other.close_);
  return *this;
}

hdf5_handle::~hdf5_handle() {
  if (id_ < 0) return;
  const silence quiet;
  close_(id_);
}

hdf5_reader::hdf5_reader(const std::filesystem::path& path) : name_(path.string()) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw spec_error({name_, 0}, errno == ENOENT ? "there is no such file." : std::strerror(errno));
  if (const auto kind = kind_if_no_file(path); !kind.empty())
    throw spec_error({name_, 0}, "this is " + kind + ", not a file.");
  if (const auto pointer = lfs_pointer_at(path); !pointer.empty())
    throw spec_error({name_, 0}, "this is " + pointer + ".");
  if (!is_hdf5(path))
    throw spec_error({name_, 0}, "this is no HDF5 file: its " + std::to_string(status.st_size) +
                                     " bytes have no signature of HDF5's at 0, 512, 1024, ...");
  need_hdf5(name_);
  const silence quiet;
  const auto access = without_locks();
  file_ = hold<&table::H5Fclose>(library().H5Fopen(path.c_str(), library().to_read, access.get()));
  if (file_.get() < 0)
    throw spec_error({name_, 0}, "the HDF5 file cannot be opened: " + innermost_reason() +
                                     ". It is damaged or cut short; copy it again.");
}

hdf5_reader::hdf5_reader(std::span<const std::uint8_t> image, std::string name)
    : name_(std::move(name)) {
  const silence quiet;
  const auto access = in_memory(1 << 16);
  std::vector<std::uint8_t> copied(image.begin(), image.end());  // once more by the library
  if (copied.empty() ||
      library().H5Pset_file_image(access.get(), copied.data(), copied.size()) < 0 ||
      (file_ = hold<&table::H5Fclose>(
           library().H5Fopen(unused_name().c_str(), library().to_read, access.get())))
              .get() < 0)
    throw spec_error({name_, 0}, "the HDF5 file cannot be opened: " + innermost_reason() + ".");
}

void hdf5_reader::fail(const std::string& what, const std::string& text) const {
  throw spec_error({name_, 0}, what + " " + text);
}

bool hdf5_reader::has(const std::string& path) const {
  const silence quiet;
  // H5Lexists wants every group on the way to be there.
  for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
    if (library().H5Lexists(file_.get(), path.substr(0, slash).c_str(), H5P_DEFAULT) <= 0)
      return false;
  return library().H5Lexists(file_.get(), path.c_str(), H5P_DEFAULT) > 0;
}

hdf5_links hdf5_reader::list(const std::string& group) const {
  const silence quiet;
  const auto what = "group \"" + group + "\"";
  if (!group.empty() && !has(group)) fail(what, "is not in this HDF5 file.");
  const auto held = hold<&table::H5Gclose>(
      library().H5Gopen2(file_.get(), group.empty() ? "/" : group.c_str(), H5P_DEFAULT));
  if (held.get() < 0) fail(what, "cannot be opened: " + innermost_reason() + ".");
  std::vector<std::string> names;
  const auto take = [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
    static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    return 0;
  };
  if (library().H5Literate(held.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, take, &names) < 0)
    fail(what, "cannot be listed: " + innermost_reason() + ".");
  hdf5_links links;
  for (auto& name : names) {
    const auto object =
        hold<&table::H5Oclose>(library().H5Oopen(held.get(), name.c_str(), H5P_DEFAULT));
    if (object.get() < 0) {
      links.unreadable.emplace_back(std::move(name), innermost_reason());
      continue;
    }
    const auto type = library().H5Iget_type(object.get());
    if (type == H5I_GROUP)
      links.groups.push_back(std::move(name));
    else if (type == H5I_DATASET)
      links.datasets.push_back(std::move(name));
  }
  return links;
}

/// A damaged header can claim any shape; what it needs has to be there before room is made for it.
hdf5_handle hdf5_reader::open_numbers(const std::string& dataset, shape& extents) const {
  const auto what = "dataset \"" + dataset + "\"";
  if (!has(dataset)) fail(what, "is not in this HDF5 file.");
  auto held = hold<&table::H5Dclose>(library().H5Dopen2(file_.get(), dataset.c_str(), H5P_DEFAULT));
  if (held.get() < 0) fail(what, "cannot be opened: " + innermost_reason() + ".");
  const auto type = hold<&table::H5Tclose>(library().H5Dget_type(held.get()));
  const auto kind = library().H5Tget_class(type.get());
  if (kind != H5T_FLOAT && kind != H5T_INTEGER)
    fail(what, "holds " + type_name(kind) + "; only integers and floats are read.");
  const auto space = hold<&table::H5Sclose>(library().H5Dget_space(held.get()));
  std::array<hsize_t, H5S_MAX_RANK> dims{};
  const int rank = library().H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
  if (rank < 0) fail(what, "has a shape that cannot be read: " + innermost_reason() + ".");
  extents.clear();
  for (int i = 0; i < rank; ++i)
    extents.push_back(static_cast<std::int64_t>(dims[static_cast<std::size_t>(i)]));
  const auto fault = storage_fault(
      {file_.get(), held.get(), name_, dataset, extents, library().H5Tget_size(type.get())});
  if (!fault.empty()) fail(what, fault);
  return held;
}

shape hdf5_reader::shape_of(const std::string& dataset) const {
  const silence quiet;
  shape extents;
  (void)open_numbers(dataset, extents);
  return extents;
}

shape hdf5_reader::read(const std::string& dataset, std::vector<float>& values) const {
  const silence quiet;
  shape extents;
  const auto held = open_numbers(dataset, extents);
  values.resize(static_cast<std::size_t>(count(extents)));
  if (!values.empty() && library().H5Dread(held.get(), library().our_float, H5S_ALL, H5S_ALL,
                                           H5P_DEFAULT, values.data()) < 0)
    fail("dataset \"" + dataset + "\"", why_unreadable(held.get()));
  return extents;
}

std::int64_t hdf5_reader::read_integer(const std::string& dataset) const {
  const silence quiet;
  shape extents;
  const auto held = open_numbers(dataset, extents);
  const auto what = "dataset \"" + dataset + "\"";
  if (count(extents) != 1) fail(what, "is " + to_string(extents) + ", expected one integer.");
  std::int64_t value = 0;
  if (library().H5Dread(held.get(), library().our_int64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0)
    fail(what, "cannot be read: " + innermost_reason() + ".");
  return value;
}

std::string hdf5_reader::read_text(const std::string& dataset) const {
  constexpr std::size_t longest = 1 << 16;
  const silence quiet;
  const auto what = "dataset \"" + dataset + "\"";
  if (!has(dataset)) fail(what, "is not in this HDF5 file.");
  const auto held =
      hold<&table::H5Dclose>(library().H5Dopen2(file_.get(), dataset.c_str(), H5P_DEFAULT));
  if (held.get() < 0) fail(what, "cannot be opened: " + innermost_reason() + ".");
  const auto type = hold<&table::H5Tclose>(library().H5Dget_type(held.get()));
  const auto space = hold<&table::H5Sclose>(library().H5Dget_space(held.get()));
  const auto bytes = library().H5Tget_size(type.get());
  if (library().H5Tget_class(type.get()) != H5T_STRING ||
      library().H5Tis_variable_str(type.get()) > 0 ||
      library().H5Sget_simple_extent_npoints(space.get()) != 1 || bytes > longest)
    fail(what, "is no string of fixed length.");
  std::string text(bytes, '\0');
  if (library().H5Dread(held.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0)
    fail(what, "cannot be read: " + innermost_reason() + ".");
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

hdf5_writer::hdf5_writer() {
  const silence quiet;
  with_groups_ = hold<&table::H5Pclose>(library().H5Pcreate(library().of_links));
  constexpr std::size_t grows_by = 16 << 20;
  const auto access = in_memory(grows_by);
  file_ = hold<&table::H5Fclose>(
      library().H5Fcreate(unused_name().c_str(), library().to_replace, H5P_DEFAULT, access.get()));
  if (file_.get() < 0 || library().H5Pset_create_intermediate_group(with_groups_.get(), 1) < 0)
    throw std::runtime_error("HDF5 cannot make a file in memory: " + innermost_reason());
}

namespace {

[[noreturn]] void refuse_to_write(const std::string& path) {
  throw std::invalid_argument("HDF5 cannot write \"" + path + "\": " + innermost_reason() + ".");
}

}  // namespace

void hdf5_writer::make_group(const std::string& path) {
  const silence quiet;
  const auto group = hold<&table::H5Gclose>(library().H5Gcreate2(
      file_.get(), path.c_str(), with_groups_.get(), H5P_DEFAULT, H5P_DEFAULT));
  if (group.get() < 0) refuse_to_write(path);
}

void hdf5_writer::write(const std::string& path, const shape& extents,
                        std::span<const float> values) {
  const silence quiet;
  if (count(extents) != static_cast<std::int64_t>(values.size()))
    throw std::invalid_argument("a dataset of the shape " + to_string(extents) + " cannot hold " +
                                std::to_string(values.size()) + " values");
  const std::vector<hsize_t> dims(extents.begin(), extents.end());
  const auto space = hold<&table::H5Sclose>(
      dims.empty()
          ? library().H5Screate(H5S_SCALAR)
          : library().H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr));
  const auto dataset = hold<&table::H5Dclose>(
      library().H5Dcreate2(file_.get(), path.c_str(), library().float32, space.get(),
                           with_groups_.get(), H5P_DEFAULT, H5P_DEFAULT));
  if (dataset.get() < 0 ||
      (!values.empty() && library().H5Dwrite(dataset.get(), library().our_float, H5S_ALL, H5S_ALL,
                                             H5P_DEFAULT, values.data()) < 0))
    refuse_to_write(path);
}

void hdf5_writer::write_integer(const std::string& path, std::int64_t value) {
  const silence quiet;
  const bool fits = value == static_cast<std::int32_t>(value);
  const hsize_t one = 1;
  const auto space = hold<&table::H5Sclose>(library().H5Screate_simple(1, &one, nullptr));
  const auto dataset = hold<&table::H5Dclose>(
      library().H5Dcreate2(file_.get(), path.c_str(), fits ? library().int32 : library().int64,
                           space.get(), with_groups_.get(), H5P_DEFAULT, H5P_DEFAULT));
  if (dataset.get() < 0 || library().H5Dwrite(dataset.get(), library().our_int64, H5S_ALL, H5S_ALL,
                                              H5P_DEFAULT, &value) < 0)
    refuse_to_write(path);
}

void hdf5_writer::write_text(const std::string& path, const std::string& text) {
  const silence quiet;
  const auto type = hold<&table::H5Tclose>(library().H5Tcopy(library().c_string));
  library().H5Tset_size(type.get(), text.size() + 1);
  const auto space = hold<&table::H5Sclose>(library().H5Screate(H5S_SCALAR));
  const auto dataset = hold<&table::H5Dclose>(
      library().H5Dcreate2(file_.get(), path.c_str(), type.get(), space.get(), with_groups_.get(),
                           H5P_DEFAULT, H5P_DEFAULT));
  if (dataset.get() < 0 || library().H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL,
                                              H5P_DEFAULT, text.c_str()) < 0)
    refuse_to_write(path);
}

std::vector<char> hdf5_writer::image() const {
  const silence quiet;
  library().H5Fflush(file_.get(), H5F_SCOPE_GLOBAL);
  const auto bytes = library().H5Fget_file_image(file_.get(), nullptr, 0);
  std::vector<char> image(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  if (bytes <= 0 || library().H5Fget_file_image(file_.get(), image.data(), image.size()) != bytes)
    throw std::runtime_error("HDF5 cannot make a file in memory: " + innermost_reason());
  return image;
}

}  // namespace poseidon
