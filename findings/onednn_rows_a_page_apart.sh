#!/usr/bin/env bash
# findings/onednn_rows_a_page_apart.sh - oneDNN 2.6.3: a reorder of 1x1 weights from blocks to rows takes several times as long where a row has 2,048 values as where it has 2,032.
#
# Seen with    Debian 12, libdnnl-dev and libdnnl2 2.6.3-1, g++ 12.2, on an AMD EPYC of the Zen 5 family, one thread.
# What is run  dnnl::reorder of float32 from OIhw16i16o to oihw, the last step of a 1x1 convolution's backward pass over its weights, for 512 outputs and 2,048 or
#              2,032 inputs, and for 2,048 outputs and 1,024 or 1,040 inputs; the best of nine. Beside it the way back, from rows to blocks.
# Behaviour    One would expect as much time for a value. With 2,048 (and 1,024) inputs a row takes 8 (and 4) KiB, and so the sixteen rows that a block is written
#              to begin at places that share the same few lines of the cache: 2.5 ms instead of 0.33 ms for 4 MB, and 5.1 ms instead of 0.76 ms for 8 MB. The
#              way back takes 0.15 and 0.44 ms.
# So           ResNet-50 and ResNet-152 have such layers: it was 1.5 % of an iteration. A loop that turns a block in the first cache and writes its rows as whole cache
#              lines takes a third of the time there (and is slower than oneDNN's where rows are no whole pages).
# Needs        g++, apt's sources for Debian 12, some seconds. Nothing is installed in the system. Exit code: 0 as described; 1 it has changed; 77 cannot be run here.
set -euo pipefail
version=2.6.3-1
skip() {
  echo "cannot be run here: $*"
  exit 77
}
command -v g++ > /dev/null || skip "g++ is not installed"
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
cd "$folder"
apt-get download "libdnnl-dev=$version" "libdnnl2=$version" libgomp1 > /dev/null 2>&1 || skip "oneDNN $version is not to be had here"
for package in ./*.deb; do dpkg-deb --extract "$package" root; done
cat > reorder.cpp << 'CPP'
#include <algorithm>
#include <chrono>
#include <cstdio>

#include <dnnl.hpp>

double best_ms(const dnnl::reorder& of, dnnl::stream& in, dnnl::memory& from, dnnl::memory& to) {
  double best = 1e9;
  for (int i = 0; i < 9; ++i) {
    const auto began = std::chrono::steady_clock::now();
    of.execute(in, from, to);
    in.wait();
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count());
  }
  return best;
}

int main() {
  using memory = dnnl::memory;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  double took[4];
  int which = 0;
  const memory::dim shapes[4][2] = {{512, 2048}, {512, 2032}, {2048, 1024}, {2048, 1040}};
  for (const auto& s : shapes) {
    const memory::dims extents{s[0], s[1], 1, 1};
    memory blocks({extents, memory::data_type::f32, memory::format_tag::OIhw16i16o}, engine);
    memory rows({extents, memory::data_type::f32, memory::format_tag::oihw}, engine);
    std::fill_n(static_cast<float*>(blocks.get_data_handle()), s[0] * s[1], 1.0f);
    took[which] = best_ms(dnnl::reorder(blocks, rows), stream, blocks, rows);
    std::printf("%d outputs, %d inputs: %.2f ms to rows, %.2f ms back\n", int(s[0]), int(s[1]), took[which],
                best_ms(dnnl::reorder(rows, blocks), stream, rows, blocks));
    ++which;
  }
  return took[0] > 2 * took[1] && took[2] > 2 * took[3] ? 0 : 1;
}
CPP
libraries=$folder/root/usr/lib/x86_64-linux-gnu
g++ -std=c++17 -O2 -w -I root/usr/include reorder.cpp -o reorder "$libraries"/libdnnl.so.2 -Wl,--allow-shlib-undefined || skip "g++ does not compile against it"
echo "oneDNN $version:"
OMP_NUM_THREADS=1 LD_LIBRARY_PATH=$libraries timeout 60 ./reorder || { echo "this has changed: rows of whole pages took more than twice as long"; exit 1; }
