#!/usr/bin/env bash
# What needs a GPU, in parts that each end in a few minutes on one card.
# Usage: scripts/gpu_suite.sh [OUT] [PART ...]   OUT: folder for the results (default data/measured)
#   searches   the rewriter on a few built-in problems, and on KernelBench level2/18 where
#              KOPT_KERNELBENCH names a clone
#   evaluator  verdicts, sandbox, timing and protocols     redteam   attacks and honest kernels
#   evidence   profiles and provenance                     builds    extensions and Triton ahead
#   codegen    generated kernels, lint, scripts
# Without PART all of them. Writes OUT/gpu_suite.json: hardware, versions, tests, a row for each
# search. PYTHON chooses the interpreter (default: .venv's if there is one).
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-data/measured}
parts=${*:2}
parts=${parts:-searches evaluator redteam evidence builds codegen}
mkdir -p "$out"
python=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" KOPT_CACHE_DIR="$work/cache"

declare -A tests=(
  [evaluator]="tests/gpu/test_cuda_evaluator.py tests/gpu/test_cuda_exchange.py
               tests/gpu/test_cuda_together.py tests/gpu/test_cuda_timing_protocols.py"
  [redteam]="tests/redteam"
  [evidence]="tests/gpu/test_gpu_profile.py tests/gpu/test_gpu_provenance.py tests/gpu/test_gpu_timeline.py"
  [builds]="tests/gpu/test_cuda_builds.py tests/gpu/test_cuda_triton_ahead.py"
  [codegen]="tests/gpu/test_triton_codegen.py tests/gpu/test_cuda_lint.py
             tests/gpu/test_cuda_languages.py tests/unit/prompts/test_prompt_examples.py
             tests/unit/scripts/test_throughput_gpu.py"
)
for part in $parts; do
  echo "== $part"
  if [ "$part" = searches ]; then
    problems='builtin/reverse_cumsum,builtin/conv_transpose_mean,builtin/softmax'
    [ -n "${KOPT_KERNELBENCH:-}" ] && problems="kernelbench/level2/18,$problems"
    "$python" -m kopt run "problem=[$problems]" device=cuda search.iterations=3 \
      limits.wall_s=240 out="$work/runs" name=suite || true
  elif [ -n "${tests[$part]:-}" ]; then
    # shellcheck disable=SC2086 # paths, one word each
    "$python" -m pytest -q -m gpu ${tests[$part]} -p no:cacheprovider --tb=short \
      --junitxml "$work/$part.xml" || true
  else
    echo "unknown part $part; expected searches, ${!tests[*]}" >&2
    exit 2
  fi
done

"$python" scripts/gpu_report.py "$work" "$out/gpu_suite.json"
