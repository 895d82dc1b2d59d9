#!/usr/bin/env bash
# What CI runs and what a developer runs: style, types, imports, tests, and the wheel, by way of
# the sdist, tried outside the checkout. Sets up .venv by itself. Usage: scripts/check.sh [--quick]
# --quick leaves out the slow tests and the wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
# Hundreds of processes import kopt, and each would compile it anew; those that judge candidates
# may write nothing down, so it is compiled ahead.
unset PYTHONDONTWRITEBYTECODE
scripts/venv.sh dev
export PATH="$PWD/.venv/bin:$PATH"
python -m compileall -q kopt actors conf data search
work=$(mktemp -d)
beside=
trap '[ -z "$beside" ] || kill -- "-$beside" 2>/dev/null || true; rm -rf "$work"' EXIT
export KOPT_CACHE_DIR="$work/cache"

wheel_works() {
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
    search.candidates=1 evaluate.compile=false evaluate.trials=1 evaluate.timing.max_pairs=6 \
    name=wheel
  test -s runs/wheel/results.parquet
}

# Runs in a group of its own, so that all of it is ended where a test fails first.
beside() { set -m; (set -e; "$@") > "$work/beside" 2>&1 & beside=$!; set +m; }
beside_is_right() {
  wait "$beside" && status=0 || status=$?
  beside=
  cat "$work/beside"
  return "$status"
}
types() { echo "== types"; mypy; }
types_and_wheel() {
  types
  echo "== wheel, by way of the sdist, outside the checkout"
  wheel_works
}

if [ "${1:-}" = --quick ]; then beside types; else beside types_and_wheel; fi
echo "== style"
ruff format --check -q .  # each by itself: what fails before an && ends no script
ruff check -q .
echo "== imports"; lint-imports --no-cache | tail -n 4
echo "== tests"
if [ "${1:-}" = --quick ]; then
  python -m pytest -q -n 2 -m "not slow and not soak and not alone"
  beside_is_right
  exit
fi
# In the order of their names, which begins with Ray's: they take longest, and wait for half of it,
# which is why three run at once on two cores, and threads that have nothing to do do not spin.
OMP_WAIT_POLICY=passive python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder --durations=12 \
  -m "not soak and not alone"
beside_is_right
echo "== tests that time code, one at a time"
mapfile -t alone < <(grep -rlF mark.alone tests --include='test_*.py')
python -m pytest -q --durations=12 -m "alone and not soak" "${alone[@]}"
echo "all checks passed"
