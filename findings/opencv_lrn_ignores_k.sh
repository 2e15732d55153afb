#!/usr/bin/env bash
# findings/opencv_lrn_ignores_k.sh - OpenCV 4.6's dnn: the parameter k of Caffe's LRN layer has no effect; it is always 1.
#
# Seen with    Debian 12, libopencv-dnn-dev and libopencv-dnn406 4.6.0+dfsg-12, g++ 12.2.
# What is run  OpenCV reads a Caffe net with one LRN layer (ACROSS_CHANNELS, local_size 3, alpha 3, beta 1) by readNetFromCaffe. k is left out, 1, 2 or 5. The input is
#              1 in three channels; the middle one is shown.
# Behaviour    Caffe's formula is x / (k + alpha/local_size * sum of squares) to the power of beta, here 1 / (k + 3): 0.25, 0.25, 0.2, 0.125. OpenCV gives 0.25
#              in all four, without a message.
# So           AlexNet as its paper has it (k 2) gives other numbers in OpenCV than in Caffe. The same layer is written without k by dividing alpha by k and
#              multiplying the result by k to the power of -beta (a Power layer's scale).
# Needs        g++, apt's sources for Debian 12, some seconds. Nothing is installed in the system. Exit code: 0 as described; 1 it has changed; 77 cannot be run here.
set -euo pipefail
version=4.6.0+dfsg-12
skip() {
  echo "cannot be run here: $*"
  exit 77
}
command -v g++ > /dev/null || skip "g++ is not installed"
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
cd "$folder"
needed=(libprotobuf32 zlib1g libblas3 liblapack3 libgfortran5 libquadmath0 libtbb12 libtbbmalloc2 libtbbbind-2-5 libglx0 libglvnd0 libx11-6 libxcb1
  libxau6 libxdmcp6 libbsd0 libmd0)
for module in core imgproc dnn; do needed+=("libopencv-${module}406=$version" "libopencv-$module-dev=$version"); done
apt-get download "${needed[@]}" > /dev/null 2>&1 || skip "OpenCV $version is not to be had here"
for package in ./*.deb; do dpkg-deb --extract "$package" root; done
cat > lrn.cpp << 'CPP'
#include <cstdio>
#include <string>

#include <opencv2/dnn.hpp>

int main() {
  for (const std::string k : {"", "k: 1", "k: 2", "k: 5"}) {
    const std::string text = "input: 'x' input_dim: 1 input_dim: 3 input_dim: 1 input_dim: 1"
                             " layer { name: 'y' type: 'LRN' bottom: 'x' top: 'y' lrn_param { local_size: 3 alpha: 3 beta: 1 " + k + " } }";
    auto net = cv::dnn::readNetFromCaffe(text.data(), text.size(), nullptr, 0);
    net.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
    const int shape[] = {1, 3, 1, 1};
    net.setInput(cv::Mat(4, shape, CV_32F, cv::Scalar(1)));
    std::printf("%s: %g\n", k.empty() ? "no k" : k.c_str(), net.forward().ptr<float>()[1]);
  }
}
CPP
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries:$folder/root/lib/x86_64-linux-gnu:$libraries/blas:$libraries/lapack
g++ -std=c++17 -w -I root/usr/include/opencv4 -I root/usr/include/x86_64-linux-gnu/opencv4 lrn.cpp -o lrn "$libraries"/libopencv_dnn.so.406 \
  "$libraries"/libopencv_core.so.406 -Wl,--allow-shlib-undefined || skip "g++ does not compile against it"
seen=$(timeout 60 ./lrn 2> /dev/null)
expected="no k: 0.25
k: 1: 0.25
k: 2: 0.25
k: 5: 0.25"
echo "OpenCV $version:"
echo "$seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
