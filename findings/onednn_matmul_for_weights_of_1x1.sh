#!/usr/bin/env bash
# findings/onednn_matmul_for_weights_of_1x1.sh - oneDNN 2.6.3: on a processor with AMX its matmul computes the gradient of a 1x1 convolution's weights several times as fast as its convolution does.
#
# Seen with    Debian 12, libdnnl-dev and libdnnl2 2.6.3-1, g++ 12.2, on an Intel Xeon with amx_bf16 (family 6, model 207), one thread.
# What is run  dW = dy^T x for 1,024 to 256 channels over 32 images of 14x14, bfloat16 in nhwc, dW in float32: as convolution_backward_weights, whose layout of dW is the library's choice, and
#              as a matmul of the same memory, [256, 6272] (transposed) times [6272, 1024], dW in rows. The best of nine in turn.
# Behaviour    One would expect that the primitive that knows what is computed is not the slower one. convolution_backward_weights took 19 ms (jit:avx512_core_amx_bf16) and leaves blocks that still have to be
#              turned into rows, matmul 5 ms (brg:avx512_core_amx_bf16). Over the 1x1 layers of ResNet-50 it was 1.2 to 6.8 times as fast; the forward pass is as fast in both.
# So           In nhwc a 1x1 convolution with stride 1 is better computed as three products of matrices, also with a copy of the pixels that a stride leaves.
# Needs        g++, a processor with amx_bf16, apt's sources for Debian 12, some seconds. Nothing is installed in the system. Exit code: 0 as described; 1 it has changed; 77 cannot be run here.
set -euo pipefail
version=2.6.3-1
skip() {
  echo "cannot be run here: $*"
  exit 77
}
command -v g++ > /dev/null || skip "g++ is not installed"
grep -q amx_bf16 /proc/cpuinfo || skip "this processor has no AMX"
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
cd "$folder"
apt-get download "libdnnl-dev=$version" "libdnnl2=$version" libgomp1 > /dev/null 2>&1 || skip "oneDNN $version is not to be had here"
for package in ./*.deb; do dpkg-deb --extract "$package" root; done
cat > gradient.cpp << 'CPP'
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <unordered_map>

#include <dnnl.hpp>

using dnnl::memory;
using type = memory::data_type;
using tag = memory::format_tag;

int main() {
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::dim images = 32, side = 14, in = 1024, out = 256, pixels = images * side * side;
  const memory::dims one{1, 1}, none{0, 0};
  const memory::desc x({images, in, side, side}, type::bf16, tag::nhwc), y({images, out, side, side}, type::bf16, tag::nhwc);
  const memory::desc w({out, in, 1, 1}, type::bf16, tag::any), dw({out, in, 1, 1}, type::f32, tag::any);
  const auto direct = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc hint({dnnl::prop_kind::forward_training, direct, x, w, y, one, none, none, none}, engine);
  const dnnl::convolution_backward_weights::primitive_desc of_convolution({direct, x, dw, y, one, none, none, none}, engine, hint);
  const memory::desc a({out, pixels}, type::bf16, tag::ba), b({pixels, in}, type::bf16, tag::ab), c({out, in}, type::f32, tag::ab);
  const dnnl::matmul::primitive_desc of_matmul({a, b, c}, engine);

  memory bottom(x, engine), diff(y, engine), blocks(of_convolution.diff_weights_desc(), engine), rows(c, engine);
  for (memory* m : {&bottom, &diff, &blocks, &rows}) std::fill_n(static_cast<char*>(m->get_data_handle()), m->get_desc().get_size(), 0);
  memory as_a(a, engine, diff.get_data_handle()), as_b(b, engine, bottom.get_data_handle());
  const dnnl::convolution_backward_weights convolution(of_convolution);
  const dnnl::matmul matmul(of_matmul);
  double best[2] = {1e9, 1e9};
  for (int i = 0; i < 18; ++i) {
    const auto began = std::chrono::steady_clock::now();
    if (i % 2 == 0)
      convolution.execute(stream, {{DNNL_ARG_SRC, bottom}, {DNNL_ARG_DIFF_DST, diff}, {DNNL_ARG_DIFF_WEIGHTS, blocks}});
    else
      matmul.execute(stream, {{DNNL_ARG_SRC, as_a}, {DNNL_ARG_WEIGHTS, as_b}, {DNNL_ARG_DST, rows}});
    stream.wait();
    best[i % 2] = std::min(best[i % 2], std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count());
  }
  std::printf("convolution_backward_weights  %6.2f ms  %s\n", best[0], of_convolution.impl_info_str());
  std::printf("matmul                        %6.2f ms  %s\n", best[1], of_matmul.impl_info_str());
  return best[0] > 1.5 * best[1] ? 0 : 1;
}
CPP
libraries=$folder/root/usr/lib/x86_64-linux-gnu
g++ -std=c++17 -O2 -w -I root/usr/include gradient.cpp -o gradient "$libraries"/libdnnl.so.2 -Wl,--allow-shlib-undefined || skip "g++ does not compile against it"
echo "oneDNN $version:"
OMP_NUM_THREADS=1 LD_LIBRARY_PATH=$libraries timeout 60 ./gradient || { echo "this has changed: the convolution took more than 1.5 times as long"; exit 1; }
