// gpu/runtime/layout.hpp - the orders and types in which the values of images lie in device memory.
#pragma once
#include "gpu/runtime/values.hpp"

namespace poseidon::gpu {

/// nchw is Caffe's layout, [images, channels, height, width] with neighbours along the width side by side; every blob that
/// is no image has it. nhwc has the channels of a place side by side. nhwc_bf16 is nhwc of bfloat16 instead of float32.
enum class layout { nchw, nhwc, nhwc_bf16 };

[[nodiscard]] constexpr bool channels_last(layout l) {
  return l != layout::nchw;
}
[[nodiscard]] constexpr value_type type_of(layout l) {
  return l == layout::nhwc_bf16 ? value_type::bfloat16 : value_type::float32;
}

}  // namespace poseidon::gpu
