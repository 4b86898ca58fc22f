# shellcheck shell=bash disable=SC2034 # those who source it use the variables
# What the scripts beside it share. They need bash, coreutils, and Slurm's sinfo and
# scontrol on the node.
#
# Three rules hold in all of them. Only a line that fabricmon printed, beginning with
# "fabricmon:", takes a node out; whatever else happens, the job goes on. A node that
# is out already keeps its reason, whoever wrote it. And only a reason that begins with
# "fabricmon:" is ever taken back.

# Settings of the site; each may be set in /etc/fabricmon/slurm.conf, which is sourced.
fabricmon=fabricmon         # the command
limit=10                    # seconds for its answer; Slurm ends a health check after 60
slurm_limit=10              # seconds for each command of Slurm
resume=no                   # yes: healthcheck.sh takes a healed node back
jobs=/run/fabricmon/jobs    # where the agent looks for drop files
nccl_logs=                  # folder for the NCCL logs of jobs, as /var/log/nccl
nccl_group=fabricmon        # group that may read them too: the agent's

PATH=${PATH:+$PATH:}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH # slurmd gives a prolog none
settings=/etc/fabricmon/slurm.conf
if [[ -r $settings ]]; then
  # shellcheck disable=SC1090
  . "$settings"
fi

node=${SLURMD_NODENAME:-$(hostname -s)}
state=  # of the node, and the reason for it, once known
held=
reason= # to drain, once known

# Tell the journal and whoever called.
say() {
  echo "fabricmon: $*" >&2
  logger -t fabricmon-slurm -- "$*" 2>/dev/null || true
}

# Whether the node should take no more jobs: ask MOMENT [--job ID]. Sets reason.
ask() {
  local status=0
  reason=$("$fabricmon" check --exit slurm --timeout "$limit" --at "$@") || status=$?
  if ((status > 1)); then
    say "$fabricmon check ended with status $status: nothing is done"
  fi
  # A program that breaks down may exit with 1 too, but does not say why in this way.
  ((status == 1)) && [[ $reason == fabricmon:* ]]
}

# Learn the state of the node and the reason for it.
look() {
  local line
  line=$(timeout "$slurm_limit" sinfo --noheader --Node --nodes="$node" \
    --format='%T|%E') || line=
  line=${line%%$'\n'*} # one line for each partition; all say the same
  state=${line%%|*}
  held=${line#*|}
  if [[ -z $state || $line != *'|'* ]]; then
    say "sinfo does not tell the state of $node: nothing is done"
    return 1
  fi
}

# Drain the node for the reason that was found, unless it is out already.
drain() {
  look || return 0
  case $state in
    *drain* | *drng* | *down* | *fail*)
      say "$node is $state already ($held): its reason stays"
      return 0
      ;;
  esac
  if timeout "$slurm_limit" scontrol update "nodename=$node" state=drain \
    "reason=$reason"; then
    say "drained $node: ${reason#fabricmon: }"
  else
    say "$node could not be drained: $reason"
  fi
}

# Take the node back if fabricmon drained it and nothing speaks against that.
take_back() {
  look || return 0
  [[ $state == drained || $state == draining ]] || return 0
  [[ $held == fabricmon:* ]] || return 0
  local why status=0
  why=$("$fabricmon" check --exit slurm --timeout "$limit" --at resume) || status=$?
  if ((status != 0)); then
    say "$node stays out: ${why:-status $status}"
  elif timeout "$slurm_limit" scontrol update "nodename=$node" state=resume; then
    say "$node is back: nothing of '$held' is left"
  else
    say "$node could not be taken back"
  fi
}
