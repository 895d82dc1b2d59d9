"""Weights folded once: computed anew when one changes, and said to be so."""

import types

import torch

from kopt.actors.rewriter.plan import plan_of
from kopt.actors.rewriter.study import Study

INIT = "self.linear = nn.Linear(64, 512)"
FORWARD = "return self.linear(x).sum(dim=1, keepdim=True)"


def made(source):
    module = types.ModuleType("made")
    exec(compile(source, "made", "exec"), module.__dict__)
    return module


def text_of(problem, *, fold):
    study = Study(problem, mode="train", device="cpu", languages=("torch",), fold=fold)
    return study.candidates(None, mode="initial", limit=1)[0].source


def test_cached_folds_are_computed_anew_when_a_weight_changes(problem_of):
    problem = problem_of(FORWARD, init=INIT, inputs=("torch.randn(256, 64)",), dtype="float32")
    text = text_of(problem, fold="cached")
    assert "Weights are folded once, and again where one has changed." in text
    assert plan_of(text).fold == "cached"
    new, x = made(text).ModelNew(), torch.randn(256, 64)

    def expected():
        return new.linear(x).sum(dim=1, keepdim=True)

    with torch.no_grad():
        torch.testing.assert_close(new(x), expected(), rtol=1e-3, atol=1e-3)
        kept = new._folded
        new(x)
        assert new._folded is kept
        new.linear.weight.mul_(2.0)
        torch.testing.assert_close(new(x), expected(), rtol=1e-3, atol=1e-3)
        new.linear.bias = torch.nn.Parameter(torch.randn(512))
        torch.testing.assert_close(new(x), expected(), rtol=1e-3, atol=1e-3)
        new.load_state_dict({k: v + 1 for k, v in new.state_dict().items()})
        torch.testing.assert_close(new(x), expected(), rtol=1e-3, atol=1e-3)


def test_folds_at_every_call_hold_nothing_and_say_so(problem_of):
    problem = problem_of(FORWARD, init=INIT, inputs=("torch.randn(256, 64)",), dtype="float32")
    text = text_of(problem, fold="call")
    assert "Weights are folded at every call." in text
    assert "fold_weights" not in text


def test_where_no_weight_is_folded_both_are_the_same_code(problem_of):
    problem = problem_of(
        "return torch.tanh(self.linear(x))",
        init=INIT,
        inputs=("torch.randn(256, 64)",),
        dtype="float32",
    )
    call, cached = (text_of(problem, fold=fold) for fold in ("call", "cached"))
    assert call == cached.replace('"cached"', '"call"')
    assert "olded" not in call
