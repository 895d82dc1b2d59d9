"""Candidates that compute something else, return another form, or disturb their inputs."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("leaves_nothing")

# Body of forward, and the check that refuses it.
FORMS = {
    "None": ("return None", "structure"),
    "a number": ("return 1.0", "structure"),
    "a list": ("return [right(self, x)]", "structure"),
    "a tuple": ("return (right(self, x),)", "structure"),
    "nothing in a list": ("return []", "structure"),
    "another dtype": ("return right(self, x).double()", "structure"),
    "half the rows": ("return right(self, x)[:256]", "structure"),
    "one row more": ("y = right(self, x)\nreturn torch.cat([y, y[:1]])", "structure"),
    "another dimension": ("return right(self, x)[None]", "structure"),
    "no elements": ("return right(self, x)[:0]", "structure"),
    "the input": ("return x", "aliasing"),
    "a view of the input": ("return x.view(256, 512).view(512, 256)", "aliasing"),
    "its result in the input": (
        "y = right(self, x)\nx.copy_(y)\nreturn x",
        "aliasing",
    ),
    "stride 0": (
        "return right(self, x)[:1].expand(512, 256)",
        "dense",
    ),
    "a meta tensor": ("return torch.empty(512, 256, device='meta')", None),
    "a sparse tensor": ("return right(self, x).to_sparse()", None),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_output_of_another_form_is_refused(judge, candidate, form) -> None:
    body, check = FORMS[form]
    made = judge(candidate(body))
    if check is None:
        assert made.verdict.kind in ("incorrect", "crashed"), made.verdict.reason
    else:
        assert (made.verdict.kind, made.verdict.check) == ("incorrect", check), made.verdict.reason


def test_an_object_that_is_no_value_is_a_crash_with_its_type(judge, candidate) -> None:
    made = judge(candidate("return object()"))
    assert made.verdict.kind == "crashed"
    assert "forward returned a object" in made.verdict.reason


# Body of forward; each agrees with the reference on some inputs or weights, and on no others.
SHORTCUTS = {
    "zeros": "return torch.zeros(512, 256)",
    "NaN everywhere": "return torch.full((512, 256), float('nan'))",
    "uninitialised memory": "return torch.empty(512, 256)",
    "no ReLU, which positive inputs do not need": (
        "return (x @ self.mixing()) * self.scale + self.shift"
    ),
    "no affine weights, which start as ones and zeros": "return torch.relu(x @ self.mixing())",
    "the mean of a row, which ones as weights make of the product": (
        "return torch.relu(x.mean(1, keepdim=True).expand(512, 256) * self.scale + self.shift)"
    ),
    "a tenth of the sum": (
        "part = x[:, ::10] @ self.mixing()[::10] * (256 / 26)\n"
        "return torch.relu(part) * self.scale + self.shift"
    ),
    "half the rows": "y = torch.zeros(512, 256)\ny[:256] = right(self, x)[:256]\nreturn y",
    "all rows but the last": "y = right(self, x)\ny[-1] = 0\nreturn y",
    "sixteen bits": "return right(self.half(), x.half()).float() if self.float() else None",
    "the first call's weights": (
        "if not hasattr(self, 'kept'):\n"
        "    self.kept = (self.mixing(), self.scale.clone(), self.shift.clone())\n"
        "mixing, scale, shift = self.kept\n"
        "return torch.relu(x @ mixing) * scale + shift"
    ),
    "clipped to the first input's range": "return right(self, x.clamp(0, 1))",
}


@pytest.mark.parametrize("shortcut", SHORTCUTS)
def test_a_shortcut_is_incorrect_by_its_values(judge, candidate, shortcut) -> None:
    made = judge(candidate(SHORTCUTS[shortcut]))
    assert made.verdict.kind == "incorrect", made.verdict.reason
    assert made.verdict.check.startswith("values:")
    assert made.verdict.error.max_abs > 0


def test_changing_the_input_is_refused(judge, candidate) -> None:
    made = judge(candidate("y = right(self, x)\nx.zero_()\nreturn y"))
    assert (made.verdict.kind, made.verdict.check) == ("incorrect", "inputs_unchanged")


def test_working_in_the_input_and_putting_it_back_is_honest(judge, candidate) -> None:
    body = """
        kept = x.clone()
        y = right(self, x.mul_(2.0).div_(2.0))
        x.copy_(kept)
        return y
    """
    made = judge(candidate(body))
    assert made.verdict.kind == "correct", made.verdict.reason


def test_a_buffer_returned_again_with_each_call_is_refused(judge, candidate) -> None:
    body = """
        if not hasattr(self, "buffer"):
            self.buffer = torch.empty(512, 256)
        return self.buffer.copy_(right(self, x))
    """
    made = judge(candidate(body))
    assert (made.verdict.kind, made.verdict.check) == ("incorrect", "two_outputs")


def test_a_slow_candidate_that_is_right_is_correct(judge, candidate) -> None:
    made = judge(candidate("for _ in range(40):\n    y = right(self, x)\nreturn y"))
    assert made.verdict.kind == "correct", made.verdict.reason
    assert made.verdict.timing.speedup < 0.5
    assert not made.gates[-1].passed


WEIGHTS = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        {weights}

    def forward(self, x):
        scale, shift = {scale}, {shift}
        return torch.relu(x @ (torch.outer(scale, scale) / scale.numel())) * scale + shift
"""
ONES = "nn.Parameter(torch.ones(features))"
ZEROS = "nn.Parameter(torch.zeros(features))"


@pytest.mark.parametrize(
    ("weights", "scale", "shift"),
    [
        (f"self.shift = {ZEROS}; self.scale = {ONES}", "self.scale", "self.shift"),
        (
            f"self.inner = nn.Module(); self.inner.scale = {ONES}; self.inner.shift = {ZEROS}",
            "self.inner.scale",
            "self.inner.shift",
        ),
        (
            "self.register_buffer('scale', torch.rand(features)); "
            "self.register_buffer('shift', torch.rand(features))",
            "self.scale",
            "self.shift",
        ),
    ],
    ids=["in another order", "under a prefix", "as buffers drawn otherwise"],
)
def test_weights_are_matched_however_they_are_declared(judge, weights, scale, shift) -> None:
    made = judge(WEIGHTS.format(weights=weights, scale=scale, shift=shift))
    assert made.verdict.kind == "correct", made.verdict.reason


def test_a_missing_weight_is_refused_before_anything_runs(judge) -> None:
    made = judge(
        WEIGHTS.format(
            weights=f"self.shift = {ZEROS}; self.width = features",
            scale="torch.ones(self.width)",
            shift="self.shift",
        )
    )
    assert made.verdict.kind == "incorrect", made.verdict.reason
    assert made.verdict.check == "weights" or made.verdict.check.startswith("values:")


def test_a_weight_of_another_shape_is_refused(judge) -> None:
    made = judge(
        WEIGHTS.format(
            weights=f"self.scale = nn.Parameter(torch.ones(features + 1)); self.shift = {ZEROS}",
            scale="self.scale[:256]",
            shift="self.shift",
        )
    )
    assert (made.verdict.kind, made.verdict.check) == ("incorrect", "weights")


def test_a_model_that_takes_no_such_arguments_does_not_compile(judge) -> None:
    made = judge(
        """
        import torch
        class ModelNew(torch.nn.Module):
            def __init__(self, rows, columns):
                super().__init__()
            def forward(self, x):
                return x
        """
    )
    assert made.verdict.kind == "compile_failed"
    assert "missing 1 required positional argument" in made.verdict.log


def test_a_forward_of_another_arity_is_a_crash(judge, candidate) -> None:
    made = judge(candidate().replace("def forward(self, x)", "def forward(self, x, y)"))
    assert made.verdict.kind == "crashed"
    assert "missing 1 required positional argument" in made.verdict.reason
