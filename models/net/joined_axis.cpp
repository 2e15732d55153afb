#include "models/net/joined_axis.hpp"

namespace poseidon {

std::size_t joined_axis_of(const net& n, const net_layer& l) {
  const auto resolve = [&](int axis, bool has_old, std::uint32_t old) {
    const auto axes = static_cast<int>(n.blobs[l.bottoms[0]].shape.size());
    return static_cast<std::size_t>(has_old    ? static_cast<int>(old)
                                    : axis < 0 ? axis + axes
                                               : axis);
  };
  if (l.type == "Slice") {
    const auto& p = l.spec.slice_param();
    return resolve(p.axis(), p.has_slice_dim(), p.slice_dim());
  }
  const auto& p = l.spec.concat_param();
  return resolve(p.axis(), p.has_concat_dim(), p.concat_dim());
}

}  // namespace poseidon
