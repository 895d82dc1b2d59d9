"""The mixed candidates of bench_throughput.py: right, wrong, crashing and not compiling.

Every source is distinct: tiles, unrolling or chunks differ, or what is wrong with it does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from string import Template
from typing import Literal

from bench_throughput_host_kernels import CPP, TORCH
from bench_throughput_kernels import CUDA, TRITON, Kernel
from bench_throughput_problems import PROBLEMS, BenchProblem, Device

from kopt.candidate import Candidate, Language
from kopt.problem import Problem

Outcome = Literal["correct", "wrong", "crashing", "not_compiling"]

_MIX: dict[Device, tuple[tuple[Language, Outcome], ...]] = {
    "cuda": (
        ("triton", "correct"),
        ("cuda", "correct"),
        ("torch", "wrong"),
        ("triton", "wrong"),
        ("cuda", "not_compiling"),
        ("torch", "correct"),
        ("triton", "crashing"),
        ("cuda", "correct"),
        ("triton", "correct"),
        ("torch", "crashing"),
        ("cuda", "wrong"),
        ("triton", "correct"),
    ),
    "cpu": (
        ("cpp", "correct"),
        ("cpp", "wrong"),
        ("cpp", "correct"),
        ("cpp", "crashing"),
        ("cpp", "correct"),
        ("cpp", "wrong"),
        ("cpp", "correct"),
        ("cpp", "not_compiling"),
        ("cpp", "correct"),
        ("cpp", "wrong"),
        ("cpp", "correct"),
        ("cpp", "correct"),
    ),
}
"""Twelve of each problem: half or more of them right."""

BLOCK = 6
"""Candidates of one problem in a row."""
_WRONG = ("", "out[out.shape[0] // 2 :] = 0.0", "out = out.unsqueeze(0)", "out = out.flip(0)")
"""What is done to the output of a wrong candidate; nothing where its kernel is wrong."""

_BUILD = """
module = load_inline(
    name="$name",
    cpp_sources=r'''$cpp''',
$cuda    functions=["run"],
$flags)
run = module.run
"""
_CUDA_HEAD = "\n#include <torch/extension.h>\n#include <cuda_runtime.h>\n"
_CPP_FLAGS = """    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
"""
_CUDA_FLAGS = """    extra_cuda_cflags=["-O3"],
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """One candidate, and what it was made to be."""

    problem: Problem
    candidate: Candidate
    outcome: Outcome

    @property
    def label(self) -> str:
        """How the report names it: unique."""
        return f"{self.problem.name.split('/')[-1]}/{self.candidate.strategy}"


def mixed_candidates(device: Device, *, per_problem: int) -> list[Mixed]:
    """Return so many distinct candidates of each problem, a few of one, then of the next.

    A fleet's searches begin one after another, so that a device has few problems at a time.
    """
    made = [
        _mixed(problem, device, number=number, turn=turn)
        for first in range(0, per_problem, BLOCK)
        for turn, problem in enumerate(PROBLEMS)
        for number in range(first, min(first + BLOCK, per_problem))
    ]
    assert len({each.candidate.source for each in made}) == len(made)
    return made


def sample_of(candidates: list[Mixed], *, size: int) -> list[Mixed]:
    """Return so many of the candidates (all, where there are fewer), of each kind its share.

    In an order of which any first part has every language, and of each one what differs from what
    was before: the time may be over before all are judged. CUDA, which takes its evaluator a
    minute, comes last in each round.
    """
    kinds = sorted(
        range(len(candidates)),
        key=lambda place: (candidates[place].candidate.language, candidates[place].outcome, place),
    )
    count = min(size, len(candidates))
    # From the middle of each of `count` equal parts, so that no kind is favoured.
    chosen = [kinds[(2 * part + 1) * len(kinds) // (2 * count)] for part in range(count)]
    return _spread([candidates[place] for place in sorted(chosen)])


def _spread(sample: list[Mixed]) -> list[Mixed]:
    """Take one of each language in turn, of those left the outcome that was taken least."""
    left: dict[str, list[Mixed]] = {}
    for each in sample:
        left.setdefault(each.candidate.language, []).append(each)
    turns = sorted(left, key=lambda name: (name == "cuda", -len(left[name]), name))
    taken: list[Mixed] = []
    while len(taken) < len(sample):
        for language in turns:
            if left[language]:
                seen = Counter(each.outcome for each in taken)
                next_one = min(left[language], key=lambda each: seen[each.outcome])
                left[language].remove(next_one)
                taken.append(next_one)
    return taken


def hanging_candidate(device: Device) -> Mixed:
    """Return a candidate whose forward never ends and keeps its device at work."""
    problem = PROBLEMS[0]
    body = "        while True:\n            x = torch.relu(x) + 1.0\n"
    source = _module(problem, head="", forward=body)
    candidate = Candidate(source=source, language="torch", strategy="hanging")
    return Mixed(problem=problem.problem(device), candidate=candidate, outcome="crashing")


def _mixed(problem: BenchProblem, device: Device, *, number: int, turn: int) -> Mixed:
    mix = _MIX[device]
    # Each problem starts elsewhere in the mix, so that any first part is a mix too.
    language, outcome = mix[(number + 3 * turn) % len(mix)]
    source = _source(problem, language, outcome, number=number)
    return Mixed(
        problem=problem.problem(device),
        candidate=Candidate(
            source=source, language=language, strategy=f"{language}-{outcome}-{number}"
        ),
        outcome=outcome,
    )


def _source(problem: BenchProblem, language: Language, outcome: Outcome, *, number: int) -> str:
    wrong = _WRONG[number % len(_WRONG)] if outcome == "wrong" else ""
    gain = "1.01" if outcome == "wrong" and not wrong else "1.0"
    if language == "torch":
        return _torch_source(problem, outcome, number=number, gain=gain, wrong=wrong)
    kernels: dict[str, dict[str, Kernel]] = {"triton": TRITON, "cuda": CUDA, "cpp": CPP}
    kernel = kernels[language][problem.name]
    tile = kernel.tiles[number % len(kernel.tiles)]
    unroll = kernel.unrolls[number // len(kernel.tiles) % len(kernel.unrolls)]
    body = Template(kernel.source).substitute(
        {
            "tile": tile,
            "unroll": unroll,
            "gain": f"{gain}f" if language in ("cuda", "cpp") else gain,
            "at": _out_of_bounds(language) if outcome == "crashing" else "0",
            "break": _break(language) if outcome == "not_compiling" else "",
            "fault": "*(volatile int*)nullptr = number;" if outcome == "crashing" else "",
        }
    )
    if language == "triton":
        head = f"import triton\nimport triton.language as tl\n{body}"
    else:
        body = body.replace("number;", f"{number};")
        head = _inline(body, kernel, language, name=f"{problem.name}_{language}_{number}")
    # The number makes sources distinct once the tiles have been gone through.
    forward = f"        out = run({kernel.arguments})  # {number}\n"
    if wrong:
        forward += f"        {wrong}\n"
    return _module(problem, head=head, forward=forward + "        return out\n")


def _torch_source(
    problem: BenchProblem, outcome: Outcome, *, number: int, gain: str, wrong: str
) -> str:
    expression = TORCH[problem.name].replace("$gain", gain)
    lines = [
        f"parts = x.split({1 << (number % 4)} * x.shape[0] // 8 + {number + 1})",
        f"out = torch.cat([{expression} for part in parts])",
    ]
    if outcome == "crashing":
        lines.append(f'raise RuntimeError("candidate {number} gives up")')
    if wrong:
        lines.append(wrong)
    lines.append("return out")
    return _module(problem, head="", forward="".join(f"        {line}\n" for line in lines))


def _inline(body: str, kernel: Kernel, language: Language, *, name: str) -> str:
    is_cuda = language == "cuda"
    text = Template(_BUILD).substitute(
        name=name,
        cpp=f"torch::Tensor run({kernel.declares});" if is_cuda else body,
        cuda=f"    cuda_sources=r'''{_CUDA_HEAD}{body}''',\n" if is_cuda else "",
        flags=_CUDA_FLAGS if is_cuda else _CPP_FLAGS,
    )
    return f"from torch.utils.cpp_extension import load_inline\n{text}"


def _module(problem: BenchProblem, *, head: str, forward: str) -> str:
    return (
        "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
        f"{head}\n\nclass ModelNew(nn.Module):\n{problem.construct}"
        f"    def forward(self, x):\n{forward}"
    )


def _out_of_bounds(language: Language) -> str:
    return "(1LL << 40)" if language == "cuda" else "(1 << 40)"


def _break(language: Language) -> str:
    return "tl.no_such_operation(row)" if language == "triton" else "undeclared += 1;"
