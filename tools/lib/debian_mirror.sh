# shellcheck shell=bash
# tools/lib/debian_mirror.sh - where this machine's apt gets Debian from; sourced by what makes a bare Debian in a folder.
#
# Sets  debian_sources  lines for sources.list: Debian 12, its updates and security; empty on another release
#                       of Debian, or where apt has no lists
#       debian_mirror   the address for debootstrap, for every release; empty: apt knows none
# shellcheck disable=SC2034  # for the caller
debian_sources=$(apt-get indextargets --format "deb \$(SITE) \$(RELEASE) main|\$(ORIGIN)|\$(CODENAME)" |
  awk -F'|' '$2 == "Debian" && $3 ~ /^bookworm/ && !seen[$1]++ { print $1 }')
# shellcheck disable=SC2034  # for the caller
debian_mirror=$(apt-get indextargets --format "\$(SITE)|\$(ORIGIN)|\$(LABEL)" |
  awk -F'|' '$2 == "Debian" && $3 == "Debian" && !found++ { print $1 }')
