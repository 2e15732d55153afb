#include "gpu/layout.hpp"

#include "gpu/layer.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace poseidon::gpu {
namespace {

layout_option layout_option_of(const net& n, const net_layer& l, const std::vector<bool>& resized) {
  const auto is_resized = [&](std::size_t b) { return resized[b]; };
  if (std::any_of(l.bottoms.begin(), l.bottoms.end(), is_resized) ||
      std::any_of(l.tops.begin(), l.tops.end(), is_resized))
    return layout_option::nchw;
  const layer_type* type = find_layer_type(l.type);
  return type == nullptr || type->images == nullptr ? layout_option::nchw : type->images(n, l);
}

bool has_orders(const shape& s) {
  return s.size() == 4 && s[1] > 1 && s[2] * s[3] > 1;
}

struct image_extents {
  std::size_t images, channels, plane;
};
/// A blob that is the same in all layouts counts as one image of channels.
image_extents extents_of(const shape& s) {
  if (!has_orders(s)) return {1, static_cast<std::size_t>(count(s)), 1};
  return {static_cast<std::size_t>(s[0]), static_cast<std::size_t>(s[1]),
          static_cast<std::size_t>(count(s, 2, s.size()))};
}

/// Calls move(place there, place in NCHW) for every value.
template <class Move>
void each_value(const shape& s, layout there, Move move) {
  const auto [images, channels, plane] = extents_of(s);
  std::size_t at = 0;
  for (std::size_t n = 0; n < images; ++n)
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t p = 0; p < plane; ++p, ++at)
        move(channels_last(there) ? (n * plane + p) * channels + c : at, at);
}

void check(const shape& s, layout of, std::size_t bytes, std::size_t values) {
  const auto wanted = static_cast<std::size_t>(count(s));
  if (values != wanted || bytes != wanted * width(type_of(of)))
    throw std::invalid_argument("a blob of " + std::to_string(wanted) +
                                " values cannot be turned between " + std::to_string(bytes) +
                                " bytes and " + std::to_string(values) + " values");
}

template <class T>
T load(std::span<const std::byte> from, std::size_t i) {
  T v;
  std::memcpy(&v, from.data() + i * sizeof(T), sizeof(T));
  return v;
}
template <class T>
void store(std::span<std::byte> to, std::size_t i, T v) {
  std::memcpy(to.data() + i * sizeof(T), &v, sizeof(T));
}

}  // namespace

bool differ(layout a, layout b, const shape& s) {
  if (s.size() != 4) return false;
  return type_of(a) != type_of(b) || (channels_last(a) != channels_last(b) && has_orders(s));
}

layouts choose_layouts(const net& n, layout images) {
  layouts chosen{std::vector<layout>(n.blobs.size(), layout::nchw),
                 std::vector<layout>(n.layers.size(), layout::nchw)};
  if (images == layout::nchw) return chosen;
  const std::vector<bool> resized = resized_blobs(n);
  std::vector<bool> written(n.blobs.size());
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    const net_layer& layer = n.layers[l];
    const layout_option option = layout_option_of(n, layer, resized);
    layout& own = chosen.layers[l];
    if (option == layout_option::inside) {
      own = images;
    } else if (option == layout_option::as_bottom) {
      const auto image = std::find_if(layer.bottoms.begin(), layer.bottoms.end(), [&](auto b) {
        return differ(images, layout::nchw, n.blobs[b].shape);
      });
      if (image != layer.bottoms.end()) own = chosen.blobs[*image];
    }
    for (const std::size_t t : layer.tops) {
      if (!written[t] && differ(own, layout::nchw, n.blobs[t].shape)) chosen.blobs[t] = own;
      written[t] = true;
    }
  }
  return chosen;
}

void to_nchw(const shape& s, layout of, std::span<const std::byte> there, std::span<float> nchw) {
  check(s, of, there.size(), nchw.size());
  each_value(s, of, [&](std::size_t i, std::size_t at) {
    nchw[at] = type_of(of) == value_type::float32 ? load<float>(there, i)
                                                  : to_float(load<bfloat16>(there, i));
  });
}

void from_nchw(const shape& s, std::span<const float> nchw, layout to, std::span<std::byte> there) {
  check(s, to, there.size(), nchw.size());
  each_value(s, to, [&](std::size_t i, std::size_t at) {
    if (type_of(to) == value_type::float32)
      store(there, i, nchw[at]);
    else
      store(there, i, round_to<bfloat16>(nchw[at]));
  });
}

}  // namespace poseidon::gpu
