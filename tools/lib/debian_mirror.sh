# shellcheck shell=bash
# tools/lib/debian_mirror.sh - where this machine's apt gets Debian 12 from; sourced by what makes a bare Debian in a folder.
#
# Sets  debian_sources  lines for sources.list: Debian 12, its updates and security; empty: apt knows none
#       debian_mirror   the address for debootstrap
debian_sources=$(apt-get indextargets --format "deb \$(SITE) \$(RELEASE) main|\$(ORIGIN)|\$(CODENAME)" |
  awk -F'|' '$2 == "Debian" && $3 ~ /^bookworm/ && !seen[$1]++ { print $1 }')
# shellcheck disable=SC2034  # for the caller
debian_mirror=$(awk '$3 == "bookworm" { print $2; exit }' <<< "$debian_sources")
