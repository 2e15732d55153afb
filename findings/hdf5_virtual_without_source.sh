#!/usr/bin/env bash
# findings/hdf5_virtual_without_source.sh - HDF5 1.10: a virtual dataset one of whose source files is missing is read without an error, as zeros.
#
# Seen with    Debian 12, libhdf5-dev and libhdf5-103-1 1.10.8+repack1-1, g++ 12.2.
# What is run  part0.h5 and part1.h5 have two floats each. whole.h5 has a virtual dataset of four floats that maps both. It is read by H5Dread; then part1.h5
#              is given another name, and it is read again.
# Behaviour    One expects that H5Dread fails where data are missing. It returns 0 (success) both times. The second time the floats of part1.h5 are 0, the
#              fill value, and the error stack is empty. An external link to the same missing file does fail.
# So           a virtual dataset of pictures and labels that was copied without its parts trains a net on zeros: ask H5Pget_virtual_filename for each part
#              first, or give the dataset a fill value that no data have, such as NaN.
# Needs        g++, apt's sources for Debian 12, some seconds. Nothing is installed in the system. Exit code: 0 as described; 1 it has changed; 77 cannot be run here.
set -euo pipefail
version=1.10.8+repack1-1
skip() {
  echo "cannot be run here: $*"
  exit 77
}
command -v g++ > /dev/null || skip "g++ is not installed"
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
cd "$folder"
needed=(libsz2 libaec0 libcurl4 libssl3 zlib1g)
apt-get download "libhdf5-dev=$version" "libhdf5-103-1=$version" "${needed[@]}" > /dev/null 2>&1 || skip "libhdf5 $version is not to be had here"
for package in ./*.deb; do dpkg-deb --extract "$package" root; done
cat > parts.cpp << 'CPP'
#include <cstdio>
#include <string>

#include <hdf5.h>

void read(const char* what, const char* name) {
  const auto file = H5Fopen("whole.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
  const auto data = H5Dopen2(file, name, H5P_DEFAULT);
  float v[] = {9, 9, 9, 9};
  const int result = data < 0 ? -1 : H5Dread(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, v);
  std::printf("%s: %s: %d, %g %g %g %g, errors %s\n", what, name, result, v[0], v[1], v[2], v[3], H5Eget_num(H5E_DEFAULT) > 0 ? "yes" : "none");
  if (data >= 0) H5Dclose(data);
  H5Fclose(file);
}

int main() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const hsize_t four = 4, two = 2;
  const auto all = H5Screate_simple(1, &four, nullptr), part = H5Screate_simple(1, &two, nullptr);
  const auto maps = H5Pcreate(H5P_DATASET_CREATE);
  for (int i = 0; i < 2; ++i) {
    const auto name = "part" + std::to_string(i) + ".h5";
    const auto file = H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const auto data = H5Dcreate2(file, "data", H5T_IEEE_F32LE, part, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const float values[] = {i + 1.0f, i + 1.5f};
    H5Dwrite(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(data);
    H5Fclose(file);
    const hsize_t from = 2 * i;
    H5Sselect_hyperslab(all, H5S_SELECT_SET, &from, nullptr, &two, nullptr);
    H5Pset_virtual(maps, all, name.c_str(), "data", part);
  }
  H5Sselect_all(all);
  const auto file = H5Fcreate("whole.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Dclose(H5Dcreate2(file, "virtual", H5T_IEEE_F32LE, all, H5P_DEFAULT, maps, H5P_DEFAULT));
  H5Lcreate_external("part1.h5", "data", file, "link", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  read("both parts", "virtual");
  std::rename("part1.h5", "elsewhere.h5");
  read("one part", "virtual");
  read("one part", "link");
}
CPP
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries:$folder/root/lib/x86_64-linux-gnu
g++ -std=c++17 -w -I root/usr/include/hdf5/serial parts.cpp -o parts "$libraries"/libhdf5_serial.so.103 -Wl,--allow-shlib-undefined ||
  skip "g++ does not compile against it"
seen=$(timeout 20 ./parts)
expected="both parts: virtual: 0, 1 1.5 2 2.5, errors none
one part: virtual: 0, 1 1.5 0 0, errors none
one part: link: -1, 9 9 9 9, errors yes"
echo "libhdf5 $version:"
echo "$seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
