"""The four problems of bench_throughput.py, in KernelBench's contract, sized for each device."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import Literal

from kopt.problem import Problem

Device = Literal["cpu", "cuda"]

_INPUTS = """

def get_inputs():
    return [torch.randn($shape)]


def get_init_inputs():
    return [$arguments]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchProblem:
    """A reference, and what a candidate of it keeps."""

    name: str
    construct: str
    """Lines of the class above `forward`; a candidate's parameters have the same names."""
    forward: str
    """Lines of `forward`, indented by eight."""
    shapes: dict[Device, str]
    """Of the input."""
    arguments: dict[Device, str]
    """Of the constructor."""

    def problem(self, device: Device) -> Problem:
        """Return the problem as kopt has it; KernelBench takes its source."""
        head = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
        text = f"{head}class Model(nn.Module):\n{self.construct}{self.forward}{_INPUTS}"
        sizes = {"shape": self.shapes[device], "arguments": self.arguments[device]}
        return Problem(name=f"throughput/{self.name}", source=Template(text).substitute(sizes))


ROW_SUM = BenchProblem(
    name="row_sum",
    construct="",
    forward="""    def forward(self, x):
        return (torch.relu(x) * 1.5 + 0.25).sum(dim=1)
""",
    shapes={"cpu": "512, 1024", "cuda": "4096, 8192"},
    arguments={"cpu": "", "cuda": ""},
)
"""Elementwise work and a reduction of rows."""

RMS_NORM = BenchProblem(
    name="rms_norm",
    construct="""    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(columns) + 0.5)

""",
    forward="""    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(dim=1, keepdim=True) + 1e-5) * self.weight
""",
    shapes={"cpu": "512, 1024", "cuda": "4096, 4096"},
    arguments={"cpu": "1024", "cuda": "4096"},
)
"""A normalisation of rows."""

LINEAR_SILU = BenchProblem(
    name="linear_silu",
    construct="""    def __init__(self, inner, columns):
        super().__init__()
        self.linear = nn.Linear(inner, columns)

""",
    forward="""    def forward(self, x):
        y = self.linear(x)
        return y * torch.sigmoid(y)
""",
    shapes={"cpu": "128, 256", "cuda": "1024, 1024"},
    arguments={"cpu": "256, 128", "cuda": "1024, 1024"},
)
"""A matrix product with an epilogue."""

MAX_POOL = BenchProblem(
    name="max_pool",
    construct="""    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(channels, 1, 1) + 0.5)

""",
    forward="""    def forward(self, x):
        return F.max_pool2d(x, 2) * self.scale
""",
    shapes={"cpu": "4, 16, 64, 64", "cuda": "32, 64, 128, 128"},
    arguments={"cpu": "16", "cuda": "64"},
)
"""A pooling of 2 x 2, scaled by channel."""

PROBLEMS: tuple[BenchProblem, ...] = (ROW_SUM, RMS_NORM, LINEAR_SILU, MAX_POOL)
