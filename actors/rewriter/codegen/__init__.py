"""Fused code for the parts of an ATen graph that are no library calls.

`fuse` gives C++ with OpenMP on a CPU and Triton on a GPU; `schedules` lists ways to write it.
"""

from __future__ import annotations

from kopt.actors.rewriter.codegen.cpp.loader import cpp_loader_source
from kopt.actors.rewriter.codegen.fusion import fuse, schedules
from kopt.actors.rewriter.codegen.kernel import FusedKernel
from kopt.actors.rewriter.codegen.schedule import Schedule

__all__ = ["FusedKernel", "Schedule", "cpp_loader_source", "fuse", "schedules"]
