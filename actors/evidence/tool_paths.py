"""Where the programs are that profile and disassemble: on PATH, in a CUDA toolkit, in Triton."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Literal

ToolName = Literal["ncu", "cuobjdump", "nvdisasm", "objdump"]

_FOLDERS = ("/usr/local/cuda/bin", "/opt/cuda/bin")
_NSIGHT = ("/opt/nvidia/nsight-compute", "/usr/local/NVIDIA-Nsight-Compute")


def find_tool(name: ToolName) -> str | None:
    """Return a program's path; None where it is nowhere.

    Triton ships cuobjdump and nvdisasm with itself.
    """
    found = shutil.which(name)
    if found is not None or name == "objdump":
        return found
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    folders = [*([f"{home}/bin"] if home else []), *_FOLDERS]
    folders += [str(path) for path in sorted(Path("/usr/local").glob("cuda-*/bin"), reverse=True)]
    if name == "ncu":
        for root in _NSIGHT:
            folders += [str(path) for path in sorted(Path(root).glob("*"), reverse=True)]
    else:
        folders += _in_triton()
    return shutil.which(name, path=os.pathsep.join(folders))


def _in_triton() -> list[str]:
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return []
    return [str(Path(spec.origin).parent / "backends" / "nvidia" / "bin")]
