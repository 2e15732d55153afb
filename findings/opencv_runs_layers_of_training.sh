#!/usr/bin/env bash
# findings/opencv_runs_layers_of_training.sh - OpenCV 4.6's dnn: a layer in place that a prototxt includes in phase TRAIN only is run.
#
# Seen with    Debian 12, libopencv-dnn-dev and libopencv-dnn406 4.6.0+dfsg-12, g++ 12.2.
# What is run  Nets that OpenCV reads by readNetFromCaffe: a Power layer with scale 10 works in place (x to x), a second one doubles x. The first one has no rule,
#              include { phase: TRAIN }, exclude { phase: TEST } or include { phase: TEST }. The input is 1.
# Behaviour    One expects that OpenCV, which only tests, leaves layers of TRAIN out, as Caffe does in phase TEST: 20, 2, 2, 20. It gives 20 in all four: the
#              rules of include and exclude have no effect here.
# So           a net whose training part adds noise or scales in place gives other numbers in OpenCV, without a message: take such layers out of the file first.
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
cat > phases.cpp << 'CPP'
#include <cstdio>
#include <string>

#include <opencv2/dnn.hpp>

int main() {
  for (const std::string rule : {"", "include { phase: TRAIN }", "exclude { phase: TEST }", "include { phase: TEST }"}) {
    const std::string text = "input: 'x' input_dim: 1 input_dim: 1 input_dim: 1 input_dim: 1"
                             " layer { name: 'ten' type: 'Power' bottom: 'x' top: 'x' power_param { scale: 10 } " + rule + " }"
                             " layer { name: 'two' type: 'Power' bottom: 'x' top: 'y' power_param { scale: 2 } }";
    auto net = cv::dnn::readNetFromCaffe(text.data(), text.size(), nullptr, 0);
    net.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
    const int shape[] = {1, 1, 1, 1};
    net.setInput(cv::Mat(4, shape, CV_32F, cv::Scalar(1)));
    std::printf("%s: %g\n", rule.empty() ? "no rule" : rule.c_str(), *net.forward().ptr<float>());
  }
}
CPP
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries:$folder/root/lib/x86_64-linux-gnu:$libraries/blas:$libraries/lapack
g++ -std=c++17 -w -I root/usr/include/opencv4 -I root/usr/include/x86_64-linux-gnu/opencv4 phases.cpp -o phases "$libraries"/libopencv_dnn.so.406 \
  "$libraries"/libopencv_core.so.406 -Wl,--allow-shlib-undefined || skip "g++ does not compile against it"
seen=$(timeout 60 ./phases 2> /dev/null)
expected="no rule: 20
include { phase: TRAIN }: 20
exclude { phase: TEST }: 20
include { phase: TEST }: 20"
echo "OpenCV $version:"
echo "$seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
