"""Sources of problems: the built-in set, KernelBench, folders, single files. No torch, no ray."""

from kopt.data.problems.builtin_source import BuiltinSource
from kopt.data.problems.contract import contract_errors, input_cases
from kopt.data.problems.folder_source import FolderSource
from kopt.data.problems.kernelbench_source import KernelBenchSource
from kopt.data.problems.resolve import Selection, check_contracts, open_sources, resolve, select
from kopt.data.problems.source import SOURCES, ProblemSource

__all__ = [
    "SOURCES",
    "BuiltinSource",
    "FolderSource",
    "KernelBenchSource",
    "ProblemSource",
    "Selection",
    "check_contracts",
    "contract_errors",
    "input_cases",
    "open_sources",
    "resolve",
    "select",
]
