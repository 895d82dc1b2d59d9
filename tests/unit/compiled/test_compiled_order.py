"""The process that takes a model apart: what it says when the model does not let it."""

from pathlib import Path

import pytest

from kopt.actors.compiled.order import Order, carry_out
from kopt.errors import ProblemError
from kopt.problem import Problem

pytestmark = pytest.mark.slow


def order(source: str, folder: Path) -> Order:
    return Order(
        problem=Problem(name="model", source=source),
        folder=str(folder / "model"),
        cache=str(folder / "cache"),
        device="cpu",
    )


def test_a_file_that_breaks_the_contract_is_the_user_s_fault(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="no class Model"):
        carry_out(order("def get_inputs():\n    return []\n", tmp_path), timeout_s=120.0)


def test_a_model_that_ends_the_process_keeps_its_baseline(tmp_path: Path) -> None:
    apart = carry_out(order("import os\nos._exit(7)\n", tmp_path), timeout_s=120.0)
    assert apart.cause == "crash"
    assert "exit code 7" in apart.reason


def test_a_model_that_never_ends_is_ended_in_time(tmp_path: Path) -> None:
    apart = carry_out(order("while True:\n    pass\n", tmp_path), timeout_s=5.0)
    assert apart.cause == "timeout"
    assert apart.reason == "it was not compiled and cut within 5 s"
