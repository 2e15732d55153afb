// cpu/cpu_math.hpp - in what a processor multiplies, and what lies between layers.
#pragma once

namespace poseidon {

/// bf16: products of bfloat16 and images of bfloat16 between layers. Sums, statistics, losses, parameters and gradients are float32 all
/// the same. Processors with AVX512_BF16 or AMX have these products.
enum class cpu_math { fp32, bf16 };

/// Whether this processor multiplies bfloat16, and oneDNN uses that (ONEDNN_MAX_CPU_ISA may forbid it).
[[nodiscard]] bool multiplies_bf16();
/// ... in tiles (AMX). oneDNN has such kernels for images in cpu/layout.hpp's pixels_bf16 alone.
[[nodiscard]] bool multiplies_bf16_tiles();

}  // namespace poseidon
