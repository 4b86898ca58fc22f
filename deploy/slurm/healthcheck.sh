#!/bin/bash
# HealthCheckProgram of slurm.conf: drains the node for what is broken on it now.
#
# HealthCheckProgram=/usr/libexec/fabricmon/slurm/healthcheck.sh
# HealthCheckInterval=60
# HealthCheckNodeState=ANY,CYCLE
set -u
. "$(dirname "$(readlink -f "$0")")/common.sh"

if ask health; then
  drain
elif [[ $resume == yes ]]; then
  take_back
fi
exit 0
