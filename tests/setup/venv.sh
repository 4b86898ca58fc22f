#!/usr/bin/env bash
# Create the virtual environment DIR with the first Python that is new enough,
# unless there is one that works.
#
# usage: venv.sh DIR      (PYTHON=path chooses another interpreter)
set -euo pipefail

dir=$1
wanted='import sys; sys.exit(sys.version_info < (3, 11))'

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if "$candidate" -c "$wanted" 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "fabricmon needs Python 3.11 or newer; none of these is:" \
    "${PYTHON:-python3 python3.13 python3.12 python3.11}" >&2
  return 1
}

if "$dir/bin/python" -c "$wanted" 2>/dev/null; then
  exit 0
fi
python=$(find_python)
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  echo "$python cannot make virtual environments with pip in them." >&2
  echo "As root: apt-get install python3-venv   (or python$version-venv)" >&2
  exit 1
fi
"$python" -m venv --clear "$dir"
# Dependency groups need pip 25.1; Debian 12 has 23.0.
"$dir/bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
