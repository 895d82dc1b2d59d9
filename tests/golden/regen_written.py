"""Write the five shown files again; `git diff` then says what a change does to what is written.

Run: python tests/golden/regen_written.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kopt.actors.rewriter.plan import plan_of
from kopt.actors.rewriter.study import DeviceKind, Study
from kopt.data.problems.config import ProblemsConfig
from kopt.data.problems.resolve import resolve

HERE = Path(__file__).parent / "rewriter"
SHOWN: tuple[tuple[str, str, DeviceKind, int], ...] = (
    ("algebra_alone.py", "builtin/matmul_chain_vector", "cpu", 0),
    ("layout_and_graph.py", "builtin/conv_avg_pool", "cuda", 0),
    ("cpp_rows.py", "builtin/kl_divergence", "cpu", 0),
    ("triton_rows.py", "builtin/rms_norm_residual", "cuda", 1),
    ("triton_behind_a_product.py", "builtin/linear_silu_scale", "cuda", 1),
)
"""File, problem, device, and which of the root's candidates."""


def study(problem: str, device: DeviceKind) -> Study:
    """A problem as the rewriter sees it with all languages."""
    (found,) = resolve([problem], ProblemsConfig())
    return Study(found, mode="train", device=device, languages={"cpp", "triton", "torch"})


def written() -> Iterator[tuple[str, str]]:
    """Each file's name and text."""
    for name, problem, device, place in SHOWN:
        found = study(problem, device).candidates(None, mode="initial", limit=place + 1)
        yield name, found[place].source


def written_again(name: str) -> str:
    """The text that the plan in a shown file is written to now."""
    (entry,) = (each for each in SHOWN if each[0] == name)
    plan = plan_of((HERE / name).read_text(encoding="utf-8"))
    assert plan is not None
    return study(entry[1], entry[2]).written(plan).source


if __name__ == "__main__":
    for name, text in written():
        (HERE / name).write_text(text, encoding="utf-8")
