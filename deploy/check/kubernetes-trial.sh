#!/usr/bin/env bash
# kubernetes-trial.sh DIR [self-test]: follows docs/kubernetes.md, A trial, on the real pods of kubernetes-pods.sh, where the
# arguments, the last line, and the exit codes are described.
set -euo pipefail
TRIAL=true exec "$(dirname "$0")/kubernetes-pods.sh" "$@"
