#!/usr/bin/env bash
# findings/protobuf_text_joins_strings.sh - protobuf's text format 3.21: two strings side by side are one string, also in a list where a comma was forgotten.
#
# Seen with    Debian 12, protobuf-compiler, libprotoc32 and libprotobuf32 3.21.12-3+deb12u1.
# What is run  protoc reads text for a message with "repeated string bottom", and shows what it has read.
# Behaviour    One expects an error, or two values. bottom: "conv1" "conv2" is one value, "conv1conv2"; so is bottom: ["conv1" "conv2"]; a line break or a comment
#              between the two changes nothing. With a comma in the list, or a second "bottom:", there are two values. No message says so.
# So           in a prototxt, a forgotten comma or a forgotten "bottom:" shows first as an unknown blob with a long name: look for the missing sign there.
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
echo 'syntax = "proto2"; message Layer { repeated string bottom = 1; }' > layer.proto
values() {
  echo "$1 -> $(printf '%b' "$1" | root/usr/bin/protoc --encode=Layer layer.proto | root/usr/bin/protoc --decode=Layer layer.proto | paste -sd ' ')"
}
seen=$(
  values 'bottom: "conv1" "conv2"'
  values 'bottom: "conv1" # first\n"conv2"'
  values 'bottom: ["conv1" "conv2"]'
  values 'bottom: ["conv1", "conv2"]'
  values 'bottom: "conv1" bottom: "conv2"'
)
expected='bottom: "conv1" "conv2" -> bottom: "conv1conv2"
bottom: "conv1" # first\n"conv2" -> bottom: "conv1conv2"
bottom: ["conv1" "conv2"] -> bottom: "conv1conv2"
bottom: ["conv1", "conv2"] -> bottom: "conv1" bottom: "conv2"
bottom: "conv1" bottom: "conv2" -> bottom: "conv1" bottom: "conv2"'
echo "protobuf $version:"
echo "$seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
