#!/usr/bin/env bash
# Make .venv with kopt in it (editable), once; say where it is. Usage: scripts/venv.sh [EXTRAS]
# EXTRAS: "dev" for what the tests need, empty to just use kopt. Re-run after pyproject.toml changed.
# PYTHON chooses the interpreter (3.11 or later).
set -euo pipefail
cd "$(dirname "$0")/.."
extras=${1:-}
stamp=.venv/.kopt-${extras:-base}
if [ ! -e "$stamp" ] || [ pyproject.toml -nt "$stamp" ]; then
  "${PYTHON:-python3}" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "kopt needs Python >= 3.11; set PYTHON=/path/to/python3.11" >&2; exit 2; }
  [ -x .venv/bin/python ] || "${PYTHON:-python3}" -m venv .venv
  echo "installing kopt into .venv (torch and ray are large; a few minutes) …" >&2
  pip=(.venv/bin/python -m pip install -q --disable-pip-version-check --no-compile)
  "${pip[@]}" "setuptools>=77" wheel
  "${pip[@]}" --no-build-isolation -e .
  # Compiled on every core, or on one while pip installs what developers need beside (which is
  # compiled as it is imported). Some packages hold files for other Pythons.
  compiled() { .venv/bin/python -m compileall -qq -j "$1" .venv/lib || true; }
  if [ -n "$extras" ]; then
    compiled 1 &
    "${pip[@]}" --no-build-isolation -e ".[$extras]"
    wait
  else
    compiled 0
  fi
  touch "$stamp"
fi
