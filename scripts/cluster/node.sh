#!/usr/bin/env bash
# Start Ray on this machine, with kopt's lanes as its resources.
# Usage: node.sh head [ray's arguments] | node.sh join HOST:PORT [ray's arguments]
# `--block` stays until the node ends. KOPT_NODE_GPUS says how many GPUs there are where nvidia-smi
# cannot; KOPT_RAY_PORT (6379) is the head's port. kopt then runs with cluster.address=auto.
#
# A GPU is one place on each of the lanes verify, timing and profile. The lanes build and programmer
# are as wide as the run's own settings (cluster.build_workers, cluster.programmer_workers).
set -euo pipefail

usage() {
  echo "usage: $0 head [ray's arguments] | $0 join HOST:PORT [ray's arguments]" >&2
  exit 2
}

[ $# -ge 1 ] || usage
role=$1
shift
gpus=${KOPT_NODE_GPUS:-}
if [ -z "$gpus" ]; then
  gpus=0
  if command -v nvidia-smi >/dev/null; then
    gpus=$(nvidia-smi --query-gpu=index --format=csv,noheader | wc -l)
  fi
fi
case $gpus in
  *[!0-9]*) echo "KOPT_NODE_GPUS: expected a number, found '$gpus'" >&2; exit 2 ;;
esac
# A machine without a GPU times on its CPU where the run says device=cpu: one place.
places=$((gpus > 0 ? gpus : 1))
lanes=$(printf '{"programmer": 1000, "build": 1000, "verify": %d, "timing": %d, "profile": %d}' \
  "$places" "$places" "$places")

# As kopt has it for a Ray of its own: the first kill for memory is heard of, other programs' memory
# is not ours to die for, and nobody outside the cluster's network reaches it.
export RAY_task_oom_retries=0 RAY_memory_usage_threshold=0.98 RAY_USAGE_STATS_ENABLED=0
export RAY_AUTH_MODE=${RAY_AUTH_MODE:-disabled} RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO=0

common=(--num-gpus "$gpus" --resources "$lanes" --object-store-memory 200000000)
case $role in
  head)
    exec ray start --head --port "${KOPT_RAY_PORT:-6379}" --include-dashboard=false \
      "${common[@]}" "$@" ;;
  join)
    [ $# -ge 1 ] || usage
    address=$1
    shift
    exec ray start --address "$address" "${common[@]}" "$@" ;;
  *) usage ;;
esac
