// What makes a file one of HDF5: part of hdf5_file.hpp that needs no library.
#include "models/files/file_kind.hpp"
#include "models/files/hdf5_file.hpp"

#include <array>
#include <fstream>

namespace poseidon {

bool is_hdf5(const std::filesystem::path& path) {
  static constexpr std::array<char, 8> signature{'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
  constexpr std::streamoff least_block = 512;
  if (!kind_if_no_file(path).empty()) return false;
  std::ifstream file(path, std::ios::binary);
  // Behind a user block, whose size is a power of two: MATLAB's files have one of 512 bytes.
  for (std::streamoff at = 0; file.seekg(at); at = at == 0 ? least_block : 2 * at) {
    std::array<char, 8> start{};
    if (!file.read(start.data(), start.size())) return false;
    if (start == signature) return true;
  }
  return false;
}

}  // namespace poseidon
