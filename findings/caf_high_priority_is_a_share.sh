#!/usr/bin/env bash
# findings/caf_high_priority_is_a_share.sh - CAF 0.17: messages of high priority do not overtake all others; an actor takes six of them, then three others.
#
# Seen with    Debian 12, libcaf-dev and libcaf-core0.17 0.17.6-2.1+b1, g++ 12.2.
# What is run  An actor that, while it handles one message, is sent 12 messages of normal priority and then 12 of high priority. It writes an "n" or an "H"
#              for each one that it handles.
# Behaviour    HHHHHHnnnHHHHHHnnnnnnnnn: the queue of high priority has a quantum of six messages a round, that of normal priority one of three.
# So           an urgent message waits for three others of each round at most, but never for none: whoever needs "before all that waits" needs a queue of its own.
# Needs        g++, apt's sources for Debian 12, some seconds. Nothing is installed in the system. Exit code: 0 as described; 1 it has changed; 77 cannot be run here.
set -euo pipefail
version=0.17.6-2.1+b1
skip() {
  echo "cannot be run here: $*"
  exit 77
}
command -v g++ > /dev/null || skip "g++ is not installed"
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
cd "$folder"
apt-get download "libcaf-dev=$version" "libcaf-core0.17=$version" > /dev/null 2>&1 || skip "libcaf $version is not to be had here"
for package in ./*.deb; do dpkg-deb --extract "$package" root; done
cat > order.cpp << 'CPP'
#include <caf/all.hpp>
#include <iostream>
#include <string>

using fill = caf::atom_constant<caf::atom("fill")>;
using normal = caf::atom_constant<caf::atom("normal")>;
using high = caf::atom_constant<caf::atom("high")>;
using show = caf::atom_constant<caf::atom("show")>;

caf::behavior receiver(caf::stateful_actor<std::string>* self) {
  return {
      [=](fill) {
        const auto to = caf::actor_cast<caf::actor>(self);
        for (int i = 0; i < 12; ++i) caf::anon_send(to, normal::value);
        for (int i = 0; i < 12; ++i) caf::anon_send<caf::message_priority::high>(to, high::value);
        self->send(self, show::value);
      },
      [=](normal) { self->state += 'n'; },
      [=](high) { self->state += 'H'; },
      [=](show) {
        std::cout << self->state << std::endl;
        self->quit();
      },
  };
}

int main() {
  caf::actor_system_config config;
  caf::actor_system system(config);
  caf::anon_send(system.spawn(receiver), fill::value);
}
CPP
libraries=$(dirname "$(find root -name 'libcaf_core.so.*' | head -n 1)")
g++ -std=c++17 -w -I root/usr/include order.cpp -o order "$(find "$libraries" -name 'libcaf_core.so.*' -type f | head -n 1)" -Wl,-rpath,"$folder/$libraries" ||
  skip "g++ does not compile against it"
seen=$(timeout 20 ./order)
expected=HHHHHHnnnHHHHHHnnnnnnnnn
echo "libcaf $version: $seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was: $expected"; exit 1; }
