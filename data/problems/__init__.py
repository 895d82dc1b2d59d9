"""Sources of problems: the built-in set, a KernelBench clone, single files. No torch, no ray."""

from kopt.data.problems.builtin_source import BuiltinSource
from kopt.data.problems.contract import contract_errors
from kopt.data.problems.kernelbench_source import KernelBenchSource
from kopt.data.problems.resolve import check_contracts, open_sources, resolve
from kopt.data.problems.source import SOURCES, ProblemSource

__all__ = [
    "SOURCES",
    "BuiltinSource",
    "KernelBenchSource",
    "ProblemSource",
    "check_contracts",
    "contract_errors",
    "open_sources",
    "resolve",
]
