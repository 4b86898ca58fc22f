#!/bin/bash
# Prolog of slurm.conf: names the job to the agent, and keeps it off a broken node.
#
# Prolog=/usr/libexec/fabricmon/slurm/prolog.sh
# PrologFlags=Alloc
#
# Exit status 1 gives the job back to the queue. Slurm then drains the node too, but
# leaves the reason that this script gave.
set -u
. "$(dirname "$(readlink -f "$0")")/common.sh"

job=${SLURM_JOB_ID:-}
if [[ ! $job =~ ^[0-9]+$ ]]; then
  say "SLURM_JOB_ID is no number: call this as Prolog of slurm.conf"
  exit 0
fi

# A drop file: which job runs here, and where its NCCL logs will be.
logs=
if [[ -n $nccl_logs ]]; then
  owner=${SLURM_JOB_UID:-0} folder=$nccl_logs/$job
  # For the job's user and the agent; for the user alone where there is no such group.
  # A link that somebody put there leads to what is not theirs: it is not followed.
  if [[ ! -L $folder ]] && {
    install -d -m 2750 -o "$owner" -g "$nccl_group" "$folder" 2>/dev/null ||
      install -d -m 700 -o "$owner" "$folder"
  }; then
    logs="\"$folder/*.log\""
  fi
fi
if [[ -d $jobs ]]; then
  # The folder is the agent's: nothing that it may have put there is written through.
  rm -f "$jobs/.$job.new"
  (
    umask 022
    set -o noclobber
    printf '[{"job": "%s", "logs": [%s]}]\n' "$job" "$logs" >"$jobs/.$job.new"
  ) && mv -fT "$jobs/.$job.new" "$jobs/$job.json"
fi

if ask prolog --job "$job"; then
  drain
  rm -f "$jobs/$job.json"
  exit 1
fi
exit 0
