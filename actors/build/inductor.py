"""What Inductor is told by its environment, so that it takes no longer than it must.

A reference's baselines, a candidate that calls torch.compile and a model that is taken apart each
compile in a folder of their own, and Inductor begins each with what it does once for a user.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess

from kopt.actors.build.compilers import processor

VECTORS_VARIABLE = "TORCHINDUCTOR_VEC_ISA_OK"
_FLAGS = {
    "avx2": ("-mavx2", "-mfma", "-mf16c"),
    "avx512f": ("-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512bw", "-mfma"),
}
"""What Inductor asks of a compiler for the vectors that a processor has, by the name in cpuinfo."""
_ASK_S = 20.0


def inductor_environment() -> dict[str, str]:
    """Return the variables, whatever is compiled."""
    environment = {
        # A fresh precompiled header costs half a minute, more than a few small kernels save.
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
    }
    if VECTORS_VARIABLE in os.environ:
        environment[VECTORS_VARIABLE] = os.environ[VECTORS_VARIABLE]
    elif has_vectors():
        # Else each kind of vector is tried out by an extension of its own: a dozen seconds.
        environment[VECTORS_VARIABLE] = "1"
    return environment


@functools.cache
def has_vectors() -> bool:
    """Return whether the compiler knows all vectors that this processor has, asked once.

    Where it does not, and on processors that are not of x86, Inductor finds out by itself.
    """
    compiler = shutil.which("g++")
    has = set(processor().split())
    flags = [flag for name, flags in _FLAGS.items() if name in has for flag in flags]
    if compiler is None or not flags:
        return False
    command = [compiler, "-x", "c++", "-fsyntax-only", *flags, os.devnull]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_ASK_S)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
