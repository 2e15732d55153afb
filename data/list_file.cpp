#include "data/list_file.hpp"

#include "models/files/file_kind.hpp"
#include "models/first_bytes.hpp"

#include <stdexcept>

namespace poseidon {

std::ifstream open_list(const std::filesystem::path& list, const std::string& of,
                        const std::string& hint) {
  const auto missing = list.string() + ": no such list of " + of;
  if (const auto kind = kind_if_no_file(list); !kind.empty())
    throw std::runtime_error(missing + " but " + kind + "." + (hint.empty() ? "" : " " + hint));
  std::ifstream file(list);
  if (!file) throw std::runtime_error(missing + ".");
  if (const auto pointer = lfs_pointer_at(list); !pointer.empty())
    throw std::runtime_error(list.string() + ": this is " + pointer + ".");
  skip_byte_order_mark(file);
  return file;
}

}  // namespace poseidon
