#!/usr/bin/env bash
# What CI runs and what a developer runs: style, types, imports, tests, and the wheel, by way of
# the sdist, tried outside the checkout. Sets up .venv by itself. Usage: scripts/check.sh [--quick]
# --quick leaves out the slow tests and the wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/venv.sh dev
export PATH="$PWD/.venv/bin:$PATH"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KOPT_CACHE_DIR="$work/cache"

echo "== style"; ruff format --check -q . && ruff check -q .
echo "== imports"; lint-imports --no-cache | tail -n 4
echo "== types, beside the tests"
mypy > "$work/types" 2>&1 & types=$!
types_are_right() { wait "$types" && status=0 || status=$?; cat "$work/types"; return "$status"; }
echo "== tests"
if [ "${1:-}" = --quick ]; then
  python -m pytest -q -n 2 -m "not slow and not soak and not alone"
  types_are_right
  exit
fi
# In the order of their names, which begins with Ray's: they take longest, and wait for half of it,
# which is why three run at once on two cores.
python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder --durations=12 \
  -m "not soak and not alone"
types_are_right
echo "== tests that time code, one at a time"
python -m pytest -q -m "alone and not soak"

echo "== wheel, by way of the sdist, outside the checkout"
python -m build -q --no-isolation --outdir "$work/dist"
python -m venv "$work/user"
site=$("$work/user/bin/python" -c 'import site; print(site.getsitepackages()[0])')
# The dependencies are lent by .venv; a path in a .pth is not searched for further .pth files, so
# the editable kopt of .venv stays out.
python -c 'import site; print(site.getsitepackages()[0])' > "$site/lent.pth"
"$work/user/bin/python" -m pip install -q --disable-pip-version-check --no-deps "$work"/dist/*.whl
cd "$work"
"$work/user/bin/python" - <<'PYTHON'
import importlib.util as util
import pathlib
import sys

import kopt
import kopt.actors
import kopt.conf
import kopt.data.schemas
import kopt.search.policies

assert pathlib.Path(kopt.__file__).is_relative_to(sys.prefix), kopt.__file__
leaked = [name for name in ("actors", "search", "data", "conf") if util.find_spec(name)]
assert not leaked, leaked
PYTHON
"$work/user/bin/kopt" --version
"$work/user/bin/kopt" problems --json > problems.json
"$work/user/bin/kopt" run problem=builtin/softmax search=best_of_n search.iterations=1 \
  search.candidates=1 evaluate.compile=false name=wheel
test -s runs/wheel/results.parquet
echo "all checks passed"
