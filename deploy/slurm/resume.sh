#!/bin/bash
# Takes this node back into service if fabricmon drained it and the fault is gone.
#
# For an operator, or every few minutes by a timer as root. With resume=yes in
# /etc/fabricmon/slurm.conf healthcheck.sh does the same. A node that anybody else
# drained stays as it is.
set -u
. "$(dirname "$(readlink -f "$0")")/common.sh"

take_back
exit 0
