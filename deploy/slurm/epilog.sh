#!/bin/bash
# Epilog of slurm.conf: drains the node for what could wait until the job had ended.
#
# Epilog=/usr/libexec/fabricmon/slurm/epilog.sh
#
# It asks first and removes the job's drop file then: the agent knows by it which ports
# the job used.
set -u
. "$(dirname "$(readlink -f "$0")")/common.sh"

job=${SLURM_JOB_ID:-}
if [[ ! $job =~ ^[0-9]+$ ]]; then
  say "SLURM_JOB_ID is no number: call this as Epilog of slurm.conf"
  exit 0
fi

if ask epilog --job "$job"; then
  drain
fi
rm -f "$jobs/$job.json"
exit 0
