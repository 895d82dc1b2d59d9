"""What Inductor is told by its environment, so that it takes no longer than it must.

A reference's baselines, a candidate that calls torch.compile and a model that is taken apart each
compile in a folder of their own, and Inductor begins each with what it does once for a user.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping

from kopt.actors.build.compilers import ASK_S, processor

VECTORS_VARIABLE = "TORCHINDUCTOR_VEC_ISA_OK"
FLAGS = {
    "avx2": ("-mavx2", "-mfma", "-mf16c"),
    "avx512f": ("-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512bw", "-mfma"),
}
"""What Inductor asks of a compiler for AVX2 and AVX-512, by the name of the vectors in cpuinfo."""


def inductor_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a process which compiles is given besides.

    Args:
        environment: all others that it is given; its compiler is `CXX`, or g++ on its `PATH`. What
            it says of vectors counts.
    """
    told = {
        # A fresh precompiled header costs half a minute, more than a few small kernels save.
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
    }
    compiler, path = environment.get("CXX", "g++"), environment.get("PATH", os.defpath)
    if VECTORS_VARIABLE not in environment and has_vectors(compiler, path=path):
        # Else an extension is compiled with torch's headers to find out: a dozen seconds.
        told[VECTORS_VARIABLE] = "1"
    return told


@functools.cache
def has_vectors(compiler: str, *, path: str) -> bool:
    """Return whether a compiler knows the vectors that this processor has, AVX2 or wider.

    Where it does not, and on processors that are not of x86, Inductor finds out by itself; so it
    does for VNNI, bfloat16 and AMX, by a few lines without torch's headers. Asked once: one
    that does not answer in time is not asked again.
    """
    found = shutil.which(compiler, path=path)
    has = set(processor().split())
    flags = [flag for name, flags in FLAGS.items() if name in has for flag in flags]
    if found is None or not flags:
        return False
    command = [found, "-x", "c++", "-fsyntax-only", *flags, os.devnull]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=ASK_S)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
