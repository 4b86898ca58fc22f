#!/bin/bash
# Called by `fabricmon gate`: drains one node of Slurm.
#
# script.path: /usr/libexec/fabricmon/gate/drain-slurm.sh
#
# $1 is the node, $2 the reason, which begins with "fabricmon:"; the finding comes as JSON
# on standard input and is not needed here. Jobs that run go on, whatever the finding
# advises: draining lets them end. A node that is out already keeps its reason, whoever
# gave it. Status 0: the node is out; anything else: it is not, and the journal says why.
#
# It only says what it would do, with status 75, until it is given FABRICMON_DRAIN=yes:
# in /etc/fabricmon/gate.yaml `script: {environment: {FABRICMON_DRAIN: "yes"}}`. So it can
# be tried by hand. Without it and with `act: true` the journal says "failed", for the
# node is in.
#
# The user of the gate must be an operator of Slurm (AdminLevel=Operator in sacctmgr).
set -u

limit=20 # seconds for each command of Slurm
node=${1:-}
reason=${2:-}

if [[ ! $node =~ ^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$ ]]; then
  echo "the first argument is no name of a node"
  exit 64
fi
if [[ $reason != fabricmon:* || $reason == *$'\n'* ]]; then
  echo "the second argument is no reason that begins with fabricmon:"
  exit 64
fi

# One line for each partition; all say the same.
if ! line=$(timeout "$limit" sinfo --noheader --Node --nodes="$node" \
  --format='%T|%E' 2>&1); then
  echo "sinfo: $line"
  exit 1
fi
line=${line%%$'\n'*}
if [[ $line != ?*'|'* ]]; then
  echo "sinfo does not tell the state of $node: ${line:-nothing}"
  exit 1
fi

state=${line%%|*}
case $state in
  *drain* | *drng* | *down* | *fail*)
    echo "$node is $state already (${line#*|}): its reason stays"
    exit 0
    ;;
esac

if [[ ${FABRICMON_DRAIN:-} != yes ]]; then
  echo "dry run: would drain $node: $reason (FABRICMON_DRAIN=yes drains)"
  exit 75
fi

if ! said=$(timeout "$limit" scontrol update "nodename=$node" state=drain \
  "reason=$reason" 2>&1); then
  echo "scontrol: $said"
  exit 1
fi
echo "drained $node: $reason"
