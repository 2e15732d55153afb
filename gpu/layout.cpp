#include "gpu/layout.hpp"

#include "gpu/layer.hpp"

#include <algorithm>
#include <stdexcept>

namespace poseidon::gpu {
namespace {

layout_wish wish_of(const net& n, const net_layer& l, const std::vector<bool>& resized) {
  const auto is_resized = [&](std::size_t b) { return resized[b]; };
  if (std::any_of(l.bottoms.begin(), l.bottoms.end(), is_resized) ||
      std::any_of(l.tops.begin(), l.tops.end(), is_resized))
    return layout_wish::nchw;
  const layer_type* type = find_layer_type(l.type);
  return type == nullptr || type->images == nullptr ? layout_wish::nchw : type->images(n, l);
}

/// Images [n, rows, columns] become [n, columns, rows].
void turn(std::size_t images, std::size_t rows, std::size_t columns, std::span<const float> from,
          std::span<float> to) {
  if (from.size() != images * rows * columns || to.size() != from.size())
    throw std::invalid_argument("a blob of " + std::to_string(images * rows * columns) +
                                " values cannot be turned from " + std::to_string(from.size()) +
                                " into " + std::to_string(to.size()));
  for (std::size_t n = 0; n < images; ++n)
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c)
        to[(n * columns + c) * rows + r] = from[(n * rows + r) * columns + c];
}

struct image_extents {
  std::size_t images, channels, plane;
};
image_extents extents_of(const shape& s) {
  return {static_cast<std::size_t>(s.at(0)), static_cast<std::size_t>(s.at(1)),
          static_cast<std::size_t>(count(s, 2, s.size()))};
}

}  // namespace

bool has_layouts(const shape& s) {
  return s.size() == 4 && s[1] > 1 && s[2] * s[3] > 1;
}

layouts choose_layouts(const net& n, layout images) {
  layouts chosen{std::vector<layout>(n.blobs.size(), layout::nchw),
                 std::vector<layout>(n.layers.size(), layout::nchw)};
  if (images == layout::nchw) return chosen;
  const std::vector<bool> resized = resized_blobs(n);
  std::vector<bool> written(n.blobs.size());
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    const net_layer& layer = n.layers[l];
    const layout_wish wish = wish_of(n, layer, resized);
    layout& own = chosen.layers[l];
    if (wish == layout_wish::nhwc) {
      own = layout::nhwc;
    } else if (wish == layout_wish::as_bottom) {
      const auto image = std::find_if(layer.bottoms.begin(), layer.bottoms.end(),
                                      [&](auto b) { return has_layouts(n.blobs[b].shape); });
      if (image != layer.bottoms.end()) own = chosen.blobs[*image];
    }
    for (const std::size_t t : layer.tops) {
      if (!written[t] && has_layouts(n.blobs[t].shape)) chosen.blobs[t] = own;
      written[t] = true;
    }
  }
  return chosen;
}

void to_nchw(const shape& s, std::span<const float> nhwc, std::span<float> nchw) {
  const auto [images, channels, plane] = extents_of(s);
  turn(images, plane, channels, nhwc, nchw);
}
void to_nhwc(const shape& s, std::span<const float> nchw, std::span<float> nhwc) {
  const auto [images, channels, plane] = extents_of(s);
  turn(images, channels, plane, nchw, nhwc);
}

}  // namespace poseidon::gpu
