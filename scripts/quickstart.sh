#!/usr/bin/env bash
# From a fresh clone to faster kernels: set up .venv, with what reports are made of, then
# `kopt run experiment=quickstart`.
# Arguments are passed on, e.g. scripts/quickstart.sh problem=builtin/softmax search.iterations=10
set -euo pipefail
"$(dirname "$0")/venv.sh" report
exec "$(dirname "$0")/../.venv/bin/kopt" run experiment=quickstart "$@"
