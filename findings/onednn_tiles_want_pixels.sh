#!/usr/bin/env bash
# findings/onednn_tiles_want_pixels.sh - oneDNN 2.6.3: on a processor with AMX a bfloat16 convolution uses its tiles in nhwc alone; in blocks of 16 channels it is slower than float32.
#
# Seen with    Debian 12, libdnnl-dev and libdnnl2 2.6.3-1, g++ 12.2, on an Intel Xeon with amx_bf16 (family 6, model 207), one thread.
# What is run  The forward pass of a 3x3 convolution of 256 to 256 channels over 32 images of 14x14, with layouts given: float32 and bfloat16 in nChw16c, and
#              bfloat16 in nhwc. The best of nine, and the name of the kernel that oneDNN has chosen.
# Behaviour    One would expect that the layout in which oneDNN's own float32 kernels are fastest is a good one for bfloat16, or that the library says so. In nChw16c it takes
#              jit_bf16:avx512_core_bf16, which took 1.2 to 1.7 times as long as float32 (a Xeon multiplies no more bfloat16 than float32 without tiles), and in nhwc brgconv:avx512_core_amx_bf16,
#              which was 20 to 33 times as fast as that. A program that leaves the layout to the library (format_tag::any) gets nhwc.
# So           A program whose images lie in blocks gains nothing from bfloat16 on such a processor, and loses: ResNet-50 trained at 0.65 of the speed of float32.
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
cat > convolution.cpp << 'CPP'
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include <dnnl.hpp>

using dnnl::memory;

struct seen {
  std::string kernel;
  double ms = 1e9;
};

seen forward(memory::data_type type, memory::format_tag layout) {
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::dims images{32, 256, 14, 14}, weights{256, 256, 3, 3}, one{1, 1}, none{0, 0};
  const memory::desc x(images, type, layout), w(weights, type, memory::format_tag::any), y(images, type, layout);
  const dnnl::convolution_forward::desc what(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, x, w, y, one, none, one, one);
  const dnnl::convolution_forward::primitive_desc how(what, engine);
  memory from(x, engine), with(how.weights_desc(), engine), to(y, engine);
  for (memory* m : {&from, &with, &to}) std::fill_n(static_cast<char*>(m->get_data_handle()), m->get_desc().get_size(), 0);
  const dnnl::convolution_forward convolution(how);
  seen out{how.impl_info_str()};
  for (int i = 0; i < 9; ++i) {
    const auto began = std::chrono::steady_clock::now();
    convolution.execute(stream, {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, with}, {DNNL_ARG_DST, to}});
    stream.wait();
    out.ms = std::min(out.ms, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count());
  }
  return out;
}

int main() {
  using type = memory::data_type;
  using tag = memory::format_tag;
  const seen exact = forward(type::f32, tag::nChw16c), blocks = forward(type::bf16, tag::nChw16c), pixels = forward(type::bf16, tag::nhwc);
  std::printf("float32, nChw16c   %6.2f ms  %s\n", exact.ms, exact.kernel.c_str());
  std::printf("bfloat16, nChw16c  %6.2f ms  %s\n", blocks.ms, blocks.kernel.c_str());
  std::printf("bfloat16, nhwc     %6.2f ms  %s\n", pixels.ms, pixels.kernel.c_str());
  const bool in_tiles = pixels.kernel.find("amx") != std::string::npos, not_in_tiles = blocks.kernel.find("amx") == std::string::npos;
  return in_tiles && not_in_tiles && blocks.ms > 3 * pixels.ms ? 0 : 1;
}
CPP
libraries=$folder/root/usr/lib/x86_64-linux-gnu
g++ -std=c++17 -O2 -w -I root/usr/include convolution.cpp -o convolution "$libraries"/libdnnl.so.2 -Wl,--allow-shlib-undefined || skip "g++ does not compile against it"
echo "oneDNN $version:"
OMP_NUM_THREADS=1 LD_LIBRARY_PATH=$libraries timeout 60 ./convolution || { echo "this has changed: blocks used no tiles, and took more than three times as long as nhwc"; exit 1; }
