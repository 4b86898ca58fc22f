#!/bin/bash
# Plugin of node-problem-detector: 0 fine, 1 a fault on this node, 2 unknown.
#
# Only a line that begins with "fabricmon:" is a fault: a program that is absent or
# breaks down must not make a node look broken.
set -u
line=$(/usr/bin/env fabricmon check --exit npd --timeout 10 2>/dev/null)
case $? in
  0) status=0 ;;
  1) status=1 ;;
  *) status=2 ;;
esac
if ((status == 1)) && [[ $line != fabricmon:* ]]; then
  status=2
fi
echo "${line:-fabricmon does not answer}"
exit "$status"
