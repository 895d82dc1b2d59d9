#!/usr/bin/env bash
# One fleet on the nodes of a SLURM job.
# Usage: sbatch [--nodes=N] [--gpus-per-node=G] scripts/cluster/slurm.sh NAME [kopt run's words]
#   sbatch --nodes=4 scripts/cluster/slurm.sh sweep -m experiment=kernelpro/search programmer.model=M
# NAME is the run's folder below ./runs. Where it is there, the job goes on with it (kopt resume),
# without the words: so a job that was pre-empted, requeued or ran out of time loses only what was
# in flight. All nodes must see this folder and the same kopt: a shared file system, or the image of
# scripts/cluster/Containerfile (KOPT_PREFIX="apptainer exec --nv kopt.sif" runs all of it inside).
#SBATCH --job-name=kopt
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=96
#SBATCH --exclusive
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@180
#SBATCH --open-mode=append
set -euo pipefail

if [ $# -lt 1 ] || [ -z "${SLURM_JOB_NODELIST:-}" ]; then
  echo "usage: sbatch $0 NAME [kopt run's words]; it runs in a SLURM job" >&2
  exit 2
fi
name=$1
shift
# sbatch runs a copy of this file: what lies beside it is found from where it was handed in.
here=${KOPT_CLUSTER_DIR:-${SLURM_SUBMIT_DIR:-.}/scripts/cluster}
[ -e "$here/node.sh" ] || { echo "no $here/node.sh: set KOPT_CLUSTER_DIR to its folder" >&2; exit 2; }
read -ra prefix <<<"${KOPT_PREFIX:-}"
port=${KOPT_RAY_PORT:-$((20000 + SLURM_JOB_ID % 10000))}
export KOPT_RAY_PORT=$port
export RAY_AUTH_MODE=${RAY_AUTH_MODE:-disabled} # as node.sh has it: the driver joins by it

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${nodes[0]}
address=$(srun --nodes=1 --ntasks=1 --nodelist="$head" hostname --ip-address)
address=${address%% *}:$port

steps=()
# shellcheck disable=SC2329  # the trap below invokes it
stop() {
  # Steps may have ended by themselves.
  [ ${#steps[@]} -eq 0 ] || kill "${steps[@]}" 2>/dev/null || true
}
trap stop EXIT

echo "head $head ($address), ${#nodes[@]} node(s)" >&2
srun --nodes=1 --ntasks=1 --nodelist="$head" --overlap --kill-on-bad-exit=0 \
  "${prefix[@]}" "$here/node.sh" head --node-ip-address "${address%:*}" --block &
steps+=($!)
for node in "${nodes[@]:1}"; do
  # A node that is lost ends its own step and no other: the fleet goes on without it.
  srun --nodes=1 --ntasks=1 --nodelist="$node" --overlap --kill-on-bad-exit=0 \
    "${prefix[@]}" "$here/node.sh" join "$address" --block &
  steps+=($!)
done

ready() {
  "${prefix[@]}" ray status --address "$address" >/dev/null 2>&1
}
for _ in $(seq "${KOPT_WAIT_TRIES:-60}"); do
  if ready; then break; fi
  sleep "${KOPT_WAIT_S:-2}"
done
ready || { echo "no Ray answers at $address" >&2; exit 1; }

if [ -e "runs/$name" ]; then
  words=(resume "runs/$name" "cluster.address=$address")
else
  words=(run "$@" "name=$name" "cluster.address=$address")
fi
"${prefix[@]}" kopt "${words[@]}" &
driver=$!
is_warned=
# shellcheck disable=SC2329  # likewise
warned() {
  # SLURM's warning before the job is taken away: the fleet stops tidily, and the job comes again.
  # Not SIGINT: what a script starts in its background is deaf to that.
  is_warned=1
  kill -TERM "$driver" 2>/dev/null || true
}
trap warned TERM
code=0
wait "$driver" || code=$?
if [ -n "$is_warned" ]; then
  wait "$driver" || true # the first wait was cut short by the signal
  scontrol requeue "$SLURM_JOB_ID"
  exit 0
fi
exit "$code"
