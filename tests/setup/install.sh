#!/usr/bin/env bash
# Install the programs that tests start, where that is possible.
#
# Runs in the root of the repository, and needs root and apt for that. Without them,
# or where a package cannot be had, it prints one line for each missing program and
# still succeeds: the tests that need it are skipped and say so.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
log=build/install.log
policy=/usr/sbin/policy-rc.d
PATH=$PATH:/usr/sbin:/sbin

apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -qq \
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 -o Acquire::http::Timeout=30 \
    -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# Print "PROGRAM PACKAGE" for each program that is not on PATH.
missing() {
  while read -r program package; do
    [[ $program == "#"* || -z $program ]] && continue
    command -v "$program" >/dev/null || echo "$program $package"
  done <"$here/programs.txt"
  # Debian ships venv without the part that puts pip into it.
  if [[ ! -e build/venv ]] &&
    ! "${PYTHON:-python3}" -c 'import ensurepip' 2>/dev/null; then
    echo "ensurepip python3-venv"
  fi
}

# Debian starts a service when it installs it. Tests start their own servers, so
# for the time of the installation an init policy denies it, unless the machine
# has a policy of its own.
deny_services() {
  [[ -e $policy ]] && return
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
}

# An installed service would still start at the next boot: a second Prometheus, or
# worse, a subnet manager on a fabric that has one.
disable_services() {
  local units
  mapfile -t units < <(dpkg -L "$@" 2>/dev/null |
    sed -nE 's,.*/lib/systemd/system/([^/@]+\.(service|timer))$,\1,p' | sort -u)
  if ((${#units[@]})) && command -v systemctl >/dev/null; then
    systemctl disable --quiet "${units[@]}"
  fi
}

install() {
  local package
  deny_services
  apt update || echo "the package lists could not be refreshed"
  if ! apt install -y --no-install-recommends "$@"; then
    # One package that cannot be had must not cost the others.
    for package in "$@"; do
      apt install -y --no-install-recommends "$package" || true
    done
  fi
  for package in "$@"; do
    # The init system's own units are none of the tests' business.
    [[ $package == systemd ]] || disable_services "$package"
  done
}

mapfile -t packages < <(missing | cut -d' ' -f2 | sort -u)
if ((${#packages[@]} && EUID == 0)) && command -v apt-get >/dev/null; then
  echo "installing: ${packages[*]} (see $log)"
  mkdir -p "$(dirname "$log")"
  install "${packages[@]}" >"$log" 2>&1 || true
fi
missing | while read -r program package; do
  echo "MISSING $program (apt-get install $package): what needs it is not tested"
done
