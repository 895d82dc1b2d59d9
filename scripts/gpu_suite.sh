#!/usr/bin/env bash
# All that needs a GPU, in under nine minutes on one card: the tests marked gpu, the rewriter on a
# few built-in problems, and on KernelBench level2/18 where KOPT_KERNELBENCH names a clone.
# Usage: scripts/gpu_suite.sh [OUT]   OUT: folder for the results (default data/measured)
# Writes OUT/gpu_suite.json, one object: hardware, versions, tests, a row for each search. PYTHON
# chooses the interpreter (default: .venv's if there is one).
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-data/measured}
mkdir -p "$out"
python=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" KOPT_CACHE_DIR="$work/cache"

echo "== tests marked gpu"
"$python" -m pytest -q -m gpu tests -p no:cacheprovider --junitxml "$work/gpu.xml" || true

echo "== searches"
problems='builtin/reverse_cumsum,builtin/conv_transpose_mean,builtin/softmax'
[ -n "${KOPT_KERNELBENCH:-}" ] && problems="kernelbench/level2/18,$problems"
"$python" -m kopt run "problem=[$problems]" device=cuda search.iterations=3 \
  limits.wall_s=240 out="$work/runs" name=suite || true

"$python" scripts/gpu_report.py "$work/gpu.xml" "$work/runs/suite" "$out/gpu_suite.json"
