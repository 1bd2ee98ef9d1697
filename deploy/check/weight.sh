#!/usr/bin/env bash
# weight.sh GROUP: with cgroups v1, all containers below a group together are scheduled like one process, and get too
# little CPU on a busy machine. Gives the group the weight of twelve processes of this priority (1024 each, of
# SCHED_IDLE 3).
set -euo pipefail
group="/sys/fs/cgroup/cpu/$1" weight=12288
case "$(chrt -p $$ 2> /dev/null || true)" in *SCHED_IDLE*) weight=36 ;; esac
if mkdir -p "$group" 2> /dev/null; then echo "$weight" > "$group/cpu.shares" || true; fi
