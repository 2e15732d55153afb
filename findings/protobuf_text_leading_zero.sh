#!/usr/bin/env bash
# findings/protobuf_text_leading_zero.sh - protobuf's text format 3.21: 010 is 8 in a field of integers, and an error in a field of floats.
#
# Seen with    Debian 12, protobuf-compiler, libprotoc32 and libprotobuf32 3.21.12-3+deb12u1.
# What is run  protoc reads text for a message with "int32 num_output" and "float base_lr", and shows what it has read or said.
# Behaviour    One expects that leading zeros change nothing. num_output: 010 is 8 and num_output: 0064 is 52, because a leading zero means base 8 as in C,
#              without a message. base_lr: 010 ("Expect a decimal number") and base_lr: 00.5 ("Hex and octal numbers must be integers.") are refused.
# So           a script that writes a prototxt with numbers of a fixed width ("%04d") makes layers of another size: write numbers without leading zeros.
# Needs        apt's sources for Debian 12, some seconds. Nothing is installed in the system. Exit code: 0 as described; 1 it has changed; 77 cannot be run here.
set -euo pipefail
version=3.21.12-3+deb12u1
skip() {
  echo "cannot be run here: $*"
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
cd "$folder"
apt-get download "protobuf-compiler=$version" "libprotoc32=$version" "libprotobuf32=$version" zlib1g > /dev/null 2>&1 ||
  skip "protobuf $version is not to be had here"
for package in ./*.deb; do dpkg-deb --extract "$package" root; done
export LD_LIBRARY_PATH=$folder/root/usr/lib/x86_64-linux-gnu:$folder/root/lib/x86_64-linux-gnu
echo 'syntax = "proto2"; message Layer { optional int32 num_output = 1; optional float base_lr = 2; }' > layer.proto
value() {
  if ! echo "$1" | root/usr/bin/protoc --encode=Layer layer.proto > bytes 2> said; then
    echo "$1 -> $(head -n 1 said)"
  else
    echo "$1 -> $(root/usr/bin/protoc --decode=Layer layer.proto < bytes)"
  fi
}
seen=$(
  value "num_output: 10"
  value "num_output: 010"
  value "num_output: 0064"
  value "base_lr: 10"
  value "base_lr: 010"
  value "base_lr: 0.5"
  value "base_lr: 00.5"
)
expected="num_output: 10 -> num_output: 10
num_output: 010 -> num_output: 8
num_output: 0064 -> num_output: 52
base_lr: 10 -> base_lr: 10
base_lr: 010 -> input:1:10: Expect a decimal number, got: 010
base_lr: 0.5 -> base_lr: 0.5
base_lr: 00.5 -> input:1:12: Hex and octal numbers must be integers."
echo "protobuf $version:"
echo "$seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
