"""Watching a model: dead operations, idle ones, and what cannot be seen. In this process."""

import json
import textwrap

import pytest
import torch

from kopt.actors.child.module import import_source
from kopt.actors.lint.operations import parsed
from kopt.actors.lint.watched import TAIL

HEAD = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
"""Five lines: the class's own first line is the sixth."""


def seen(body: str, tmp_path, *arguments: torch.Tensor):
    source = HEAD + textwrap.indent(textwrap.dedent(body), "    ")
    module = import_source(source + TAIL, name="watched_reference", folder=tmp_path)
    with torch.no_grad():
        return parsed(module.Model()(*arguments))


def places(found: dict) -> set[str]:
    return {name for _, name in found}


def test_what_no_output_depends_on_is_dead(tmp_path) -> None:
    report = seen(
        """\
        def forward(self, x):
            used = x.sin()
            lost = used.exp()
            lost = lost + 1
            return used
        """,
        tmp_path,
        torch.rand(100),
    )
    assert {place: row[:2] for place, row in report.dead.items()} == {
        (8, "exp"): (1, 1),
        (9, "add"): (1, 1),
    }
    # Each of three operations reads and writes 100 elements.
    assert report.dead[8, "exp"][2] == pytest.approx(1 / 3)
    assert not report.is_opaque


def test_views_and_in_place_writes_are_followed(tmp_path) -> None:
    report = seen(
        """\
        def forward(self, x):
            out = torch.empty_like(x)
            left = out[:2]
            left.copy_(x[:2] * 3)
            out[2:].copy_(x[2:].exp())
            out.add_(1)
            return out.t()
        """,
        tmp_path,
        torch.rand(4, 4),
    )
    assert report.dead == {}
    assert not report.is_opaque


def test_a_value_that_python_read_was_used(tmp_path) -> None:
    report = seen(
        """\
        def forward(self, x):
            return x * 2 if x.sum().item() > 0 else x * 3
        """,
        tmp_path,
        torch.rand(4),
    )
    assert report.dead == {}


def test_a_model_may_name_itself(tmp_path) -> None:
    report = seen(
        """\
        def __init__(self):
            super(Model, self).__init__()

        def forward(self, x):
            return x.sin()
        """,
        tmp_path,
        torch.rand(4),
    )
    assert report.dead == {}


def test_writing_a_buffer_is_an_effect(tmp_path) -> None:
    report = seen(
        """\
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x):
            self.count.add_(x.mean())
            return x * 2
        """,
        tmp_path,
        torch.rand(4),
    )
    assert report.dead == {}


def test_an_unused_second_result_does_not_make_an_operation_dead(tmp_path) -> None:
    report = seen(
        "def forward(self, x):\n    values, _ = x.max(dim=1)\n    return values\n",
        tmp_path,
        torch.rand(4, 4),
    )
    assert report.dead == {}


def test_operations_that_give_back_an_operand_are_idle(tmp_path) -> None:
    report = seen(
        """\
        def forward(self, x):
            y = torch.relu(torch.relu(x))
            y = y.mean(dim=1, keepdim=False)
            return y.clone().clamp(0, 1).sin()
        """,
        tmp_path,
        torch.tensor([[-1.0], [0.25], [0.5]]),
    )
    # The first relu changes -1; the mean is over one element; clone is asked for a copy.
    assert report.idle[7, "relu"] == (frozenset({1}), 2)
    assert places(report.idle) == {"relu", "mean", "clamp"}


def test_an_in_place_operation_is_compared_with_what_was_there(tmp_path) -> None:
    body = "def forward(self, x):\n    return x.sin().mul_(2).relu_()\n"
    report = seen(body, tmp_path, torch.rand(8))
    assert places(report.idle) == {"relu_"}


def test_memory_that_nothing_was_seen_to_fill_is_told(tmp_path) -> None:
    body = "def forward(self, x):\n    return torch.empty_like(x) + x.sin() * 0\n"
    assert seen(body, tmp_path, torch.rand(8)).is_opaque
    body = "def forward(self, x):\n    return torch.empty_like(x)\n"
    assert seen(body, tmp_path, torch.rand(8)).is_opaque


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"opaque": 0, "dead": [[1]]})])
def test_a_report_that_is_none_is_none(text: str) -> None:
    assert parsed(text) is None
