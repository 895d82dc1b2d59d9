#!/usr/bin/env bash
# What needs a GPU, in parts that each end in a few minutes; several GPUs share the parts out.
# Usage: scripts/gpu_suite.sh [OUT] [PART ...]   OUT: folder for the results (default data/measured)
#   searches   the rewriter on a few built-in problems, and on KernelBench level2/18 where
#              KOPT_KERNELBENCH names a clone
#   evaluator  verdicts, timed calls, several at a time     redteam   attacks and honest kernels
#   protocols  timing protocols and provenance              evidence  profiles, timelines, surveys
#   builds     extensions and Triton ahead                  codegen   generated kernels, lint, scripts
# Without PART all of them. Merges into OUT/gpu_suite.json, for each part: machine, versions, date,
# tests, a row for each search; OUT/PART.log has all that was printed. PYTHON chooses the
# interpreter (default: .venv's if there is one), CUDA_VISIBLE_DEVICES the GPUs.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-data/measured}
parts=${*:2}
parts=${parts:-redteam protocols evidence searches evaluator builds codegen}
mkdir -p "$out"
out=$(realpath "$out")
python=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" KOPT_CACHE_DIR="$work/cache"
export python work out
gpus=${CUDA_VISIBLE_DEVICES:-$(nvidia-smi --query-gpu=index --format=csv,noheader | paste -sd,)}
export gpus

tests_of() {
  case $1 in
    evaluator) echo tests/gpu/test_cuda_{content,release,evaluator,exchange,together,given,preload}.py ;;
    redteam) echo tests/redteam ;;
    protocols) echo tests/gpu/test_cuda_timing_protocols.py tests/gpu/test_gpu_provenance.py ;;
    evidence) echo tests/gpu/test_gpu_{profile,timeline,counters,use_load}.py \
      tests/gpu/test_cuda_survey.py ;;
    builds) echo tests/gpu/test_cuda_{builds,triton_ahead}.py ;;
    codegen) echo tests/gpu/test_triton_codegen.py tests/gpu/test_compiled_model_gpu.py \
      tests/gpu/test_cuda_{lint,languages}.py \
      tests/unit/prompts/test_prompt_examples.py tests/unit/scripts/test_throughput_gpu.py ;;
    *) return 1 ;;
  esac
}

run_part() { # PART SLOT
  local part=$1 began=$SECONDS tests problems
  CUDA_VISIBLE_DEVICES=$(cut -d, -f$(($2 + 1)) <<< "$gpus")
  export CUDA_VISIBLE_DEVICES
  if [ "$part" = searches ]; then
    problems='builtin/reverse_cumsum,builtin/conv_transpose_mean,builtin/softmax'
    [ -n "${KOPT_KERNELBENCH:-}" ] && problems="kernelbench/level2/18,$problems"
    "$python" -m kopt run "problem=[$problems]" device=cuda search.iterations=3 \
      limits.wall_s=240 out="$work/runs" name=suite || true
  else
    read -ra tests <<< "$(tests_of "$part")"
    "$python" -m pytest -q -m gpu "${tests[@]}" -p no:cacheprovider --tb=short --durations=8 \
      --junitxml "$work/$part.xml" || true
  fi > "$out/$part.log" 2>&1
  echo "== $part on GPU $CUDA_VISIBLE_DEVICES: $((SECONDS - began)) s; $(tail -n 1 "$out/$part.log")"
}
export -f tests_of run_part

for part in $parts; do
  [ "$part" = searches ] || tests_of "$part" > /dev/null || {
    echo "unknown part $part; expected searches, redteam, protocols, evidence, evaluator, builds" \
      "or codegen" >&2
    exit 2
  }
done
# shellcheck disable=SC2016,SC2086 # expanded by the inner shell; one word each
printf '%s\n' $parts | xargs -P "$(tr , '\n' <<< "$gpus" | wc -l)" -n 1 --process-slot-var=SLOT \
  bash -c 'run_part "$1" "$SLOT"' part

"$python" scripts/gpu_report.py "$work" "$out/gpu_suite.json"
