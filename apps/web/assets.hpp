// apps/web/assets.hpp - the page's files (apps/web/page/), which CMake has put into the program.
#pragma once
#include <string_view>

namespace poseidon::web {

struct asset {
  std::string_view path;  ///< "/layout.js"
  std::string_view type;  ///< for Content-Type
  std::string_view bytes;
};

/// Null: there is no such file.
[[nodiscard]] const asset* find_asset(std::string_view path);

}  // namespace poseidon::web
