"""Micro-profiling tools: what an expert would see in a profile, as pure functions of evidence.

`diagnose` asks all tools that are for the class of the bottleneck and keeps the few findings that
matter; `ToolRegistry.register` adds one. Nothing here needs a GPU, torch or numpy.
"""

from kopt.tools import (
    energy_notes,
    global_access,
    headroom,
    host,
    lanes,
    occupancy,
    registers,
    shared_memory,
    stalls,
    tensor,
    transfers,
)
from kopt.tools.diagnosis import MAX_FINDINGS, Diagnosis, Silent, diagnose
from kopt.tools.loading import load_tool_file
from kopt.tools.registry import ToolRegistry
from kopt.tools.tool import Analysis, ProfilingTool
from kopt.tools.view import MissingFigure, View

__all__ = [
    "MAX_FINDINGS",
    "Analysis",
    "Diagnosis",
    "MissingFigure",
    "ProfilingTool",
    "Silent",
    "ToolRegistry",
    "View",
    "diagnose",
    "energy_notes",
    "global_access",
    "headroom",
    "host",
    "lanes",
    "load_tool_file",
    "occupancy",
    "registers",
    "shared_memory",
    "stalls",
    "tensor",
    "transfers",
]
