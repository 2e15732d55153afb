# shellcheck shell=bash
# tools/lib/debian_root.sh - a bare Debian of some release in a folder; sourced by what tries Poseidon on a system that is not this machine's.
#
#   need_debian_roots               1 where this machine cannot make one (root's rights, debootstrap, a mirror); $debian_root_why says why
#   debian_root RELEASE FOLDER [PACKAGE ...]
#                                   makes it, with these packages, unless FOLDER has it from an earlier call. 1 where that fails, with
#                                   $debian_root_why; the last lines of debootstrap or apt are in FOLDER.log
#   in_debian_root FOLDER [--bind FROM TO] ... COMMAND ...
#                                   runs a command in it, with this machine's network, /dev and /sys, a /proc of its own, and FROM of this machine at TO. What is
#                                   mounted, and all processes, go with the command
#
# RELEASE is bookworm, trixie or testing. The lists of a testing that a mirror has kept too long are taken all the same: these folders are thrown away.
# shellcheck disable=SC2034  # for the caller
debian_root_releases=(bookworm trixie testing)
debian_root_why=

need_debian_roots() {
  debian_root_why=
  if ((EUID != 0)); then
    debian_root_why="a root folder needs root's rights"
  elif ! type -P debootstrap > /dev/null; then
    debian_root_why="debootstrap is not installed (apt-get install debootstrap)"
  else
    # shellcheck source=tools/lib/debian_mirror.sh
    . "$(dirname "${BASH_SOURCE[0]}")/debian_mirror.sh"
    [[ -n $debian_mirror ]] || debian_root_why="this machine's apt knows no mirror of Debian (apt-get update fetches its lists)"
  fi
  [[ -z $debian_root_why ]]
}

debian_root() {
  local release=$1 root=$2 made
  shift 2
  [[ -n ${debian_mirror:-} ]] || need_debian_roots || return 1
  made=$root/made # one line for each call that has ended well
  mkdir -p "$(dirname "$root")"
  if [[ ! -f $made ]]; then
    rm -rf --one-file-system "$root"
    if ! debootstrap --variant=minbase --include=ca-certificates "$release" "$root" "$debian_mirror" > "$root.log" 2>&1; then
      debian_root_why="debootstrap could not make a Debian $release: $(tail -n 1 "$root.log"). Is there a network? $root.log has the rest"
      return 1
    fi
    [[ $release != bookworm || -z $debian_sources ]] || printf '%s\n' "$debian_sources" > "$root/etc/apt/sources.list"
    echo "debootstrap $release" > "$made"
  fi
  echo 'Acquire::Check-Valid-Until "false";' > "$root/etc/apt/apt.conf.d/90throwaway"
  if (($#)) && ! grep --quiet --line-regexp --fixed-strings "apt $*" "$made"; then
    if ! in_debian_root "$root" bash -c 'apt-get --yes update && apt-get --yes install --no-install-recommends "$@"' apt "$@" > "$root.log" 2>&1; then
      debian_root_why="packages for Debian $release could not be installed: $(tail -n 1 "$root.log"). $root.log has the rest"
      return 1
    fi
    rm -rf "$root"/var/cache/apt/archives/*.deb
    echo "apt $*" >> "$made"
  fi
}

in_debian_root() {
  # shellcheck disable=SC2016  # the inner shell's
  unshare --mount --pid --fork --kill-child --propagation private bash -c '
    set -e
    root=$1
    shift
    # As on a machine, / is a mount: programs that make name spaces of their own ask for it.
    mount --rbind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    [[ ! -e /etc/resolv.conf ]] || cp --dereference --remove-destination /etc/resolv.conf "$root/etc/resolv.conf"
    while [[ ${1:-} == --bind ]]; do
      if [[ -d $2 ]]; then mkdir -p "$root$3"; else mkdir -p "$(dirname "$root$3")" && touch "$root$3"; fi
      mount --bind "$2" "$root$3"
      shift 3
    done
    # Process 1 has to stay this shell: it collects the processes whose parents have ended, which the command may not do.
    code=0
    env --ignore-environment DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      ${JOBS:+"JOBS=$JOBS"} chroot "$root" "$@" || code=$?
    exit "$code"' in_debian_root "$@"
}
