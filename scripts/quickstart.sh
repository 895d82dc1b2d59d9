#!/usr/bin/env bash
# From a fresh clone to faster kernels: set up .venv, then `kopt run experiment=quickstart`.
# Arguments are passed on, e.g. scripts/quickstart.sh problem=builtin/softmax search.iterations=10
set -euo pipefail
"$(dirname "$0")/venv.sh"
exec "$(dirname "$0")/../.venv/bin/kopt" run experiment=quickstart "$@"
