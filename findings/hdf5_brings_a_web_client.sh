#!/usr/bin/env bash
# findings/hdf5_brings_a_web_client.sh - HDF5 1.10 of Debian: a program that reads local files with it loads clients for HTTP, LDAP, RTMP, SSH and Kerberos before it begins.
#
# Seen with    Debian 12, libhdf5-103-1 1.10.8+repack1-1, libcurl4 7.88.
# What is run  ldd on libhdf5_serial.so.103 in a fresh Debian 12.
# Behaviour    One expects the C library, zlib and the compressor that the format names. It needs more than 30 libraries: the driver that reads files from Amazon's
#              store (ROS3) is compiled into the library, so that libcurl is needed at once, and with it all that it can speak. A program that links oneDNN, OpenSSL,
#              protobuf, CAF and Cap'n Proto began in 20 ms of processor time; with HDF5 as well it took 40 ms and half as many page faults again.
# So           a program of many short runs keeps what reads HDF5 in a library of its own, which it opens when it meets such a file.
# Needs        root's rights, debootstrap, apt's sources for Debian, 500 MiB and a minute. Exit code: 0 as described; 1 it has changed; 77 cannot be run here.
set -euo pipefail
version=1.10.8+repack1-1
skip() {
  echo "cannot be run here: $*"
  exit 77
}
((EUID == 0)) || skip "a root folder needs root's rights"
command -v debootstrap > /dev/null || skip "debootstrap is not installed"
mirror=$(apt-get indextargets --format "\$(SITE)|\$(ORIGIN)" | awk -F'|' '$2 == "Debian" { print $1; exit }')
[[ -n $mirror ]] || skip "apt knows no mirror of Debian"
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror" > /dev/null || skip "debootstrap made no Debian 12"
chroot "$root" apt-get install --yes --no-install-recommends "libhdf5-103-1=$version" > /dev/null 2>&1 ||
  skip "libhdf5-103-1 $version is not to be had any more"
needed=$(chroot "$root" ldd /usr/lib/x86_64-linux-gnu/libhdf5_serial.so.103 | awk '/=> \// { print $1 }' | sort)
count=$(wc -l <<< "$needed")
clients=$(grep -E '^lib(curl|ldap|rtmp|ssh2|krb5)[-.]' <<< "$needed" | tr '\n' ' ')
echo "libhdf5_serial.so.103 $version needs $count libraries, among them $clients"
if ((count <= 30)) || (($(wc -w <<< "$clients") != 5)); then
  echo "this has changed: it needed more than 30 libraries, five clients among them"
  exit 1
fi
