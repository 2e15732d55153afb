#!/usr/bin/env bash
# findings/capnp_list_got_in_a_loop.sh - Cap'n Proto 0.9: a valid message of 4 MiB cannot be read any more after its list was asked for 15 times.
#
# Seen with    Debian 12, libcapnp-dev, libcapnp-0.9.2 and capnproto 0.9.2-2, g++ 12.2.
# What is run  A message with a list of 1,048,576 floats (4 MiB) is read by FlatArrayMessageReader with its default options, in two ways: a loop that calls
#              getValues()[5] each time; a loop that has called getValues() once before and goes through all floats 100 times.
# Behaviour    One expects that the limit for what is traversed (64 MiB) counts what is read. Each call of getValues() counts the whole list, even if one
#              float is read afterwards: the first loop ends at its 16th call with "Exceeded message traversal limit.  See capnp::ReaderOptions."
#              The second loop reads 400 MiB and never fails, because elements of numbers are not counted at all.
# So           call the getter of a list (weights, gradients) once before a loop, not in its condition or its body; a test with a small list does not show it.
# Needs        g++, apt's sources for Debian 12, some seconds. Nothing is installed in the system. Exit code: 0 as described; 1 it has changed; 77 cannot be run here.
set -euo pipefail
version=0.9.2-2
skip() {
  echo "cannot be run here: $*"
  exit 77
}
command -v g++ > /dev/null || skip "g++ is not installed"
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
cd "$folder"
apt-get download "libcapnp-dev=$version" "libcapnp-0.9.2=$version" "capnproto=$version" libssl3 zlib1g > /dev/null 2>&1 ||
  skip "libcapnp $version is not to be had here"
for package in ./*.deb; do dpkg-deb --extract "$package" root; done
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries:$folder/root/lib/x86_64-linux-gnu PATH=$folder/root/usr/bin:$PATH
cat > numbers.capnp << 'CAPNP'
@0xbf5147cbbecf40c1;
struct Numbers { values @0 :List(Float32); }
CAPNP
capnp compile --import-path=root/usr/include -oc++ numbers.capnp || skip "capnp does not compile the schema"
cat > loop.cpp << 'CPP'
#include <cstdio>

#include <capnp/message.h>
#include <capnp/serialize.h>

#include "numbers.capnp.h"

int main() {
  capnp::MallocMessageBuilder message;
  message.initRoot<Numbers>().initValues(1 << 20);
  const auto words = capnp::messageToFlatArray(message);
  int calls = 0;
  try {
    capnp::FlatArrayMessageReader reader(words);
    const auto root = reader.getRoot<Numbers>();
    for (; calls < 100; ++calls) root.getValues()[5];
    std::puts("list asked for each time: no failure");
  } catch (const kj::Exception& e) {
    std::printf("list asked for each time: %d times, then: %s\n", calls, e.getDescription().cStr());
  }
  capnp::FlatArrayMessageReader reader(words);
  const auto values = reader.getRoot<Numbers>().getValues();
  long read = 0;
  for (int i = 0; i < 100; ++i)
    for (const float x : values) read += x == 0;
  std::printf("list asked for once: %ld floats\n", read);
}
CPP
g++ -std=c++17 -w -I root/usr/include loop.cpp numbers.capnp.c++ -o loop "$libraries"/libcapnp-0.9.2.so "$libraries"/libkj-0.9.2.so \
  -Wl,--allow-shlib-undefined || skip "g++ does not compile against it"
seen=$(timeout 60 ./loop)
expected="list asked for each time: 15 times, then: Exceeded message traversal limit.  See capnp::ReaderOptions.
list asked for once: 104857600 floats"
echo "libcapnp $version:"
echo "$seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
