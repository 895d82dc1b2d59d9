import copy
import types

import pytest
import torch

from kopt.actors.rewriter.study import Study

CASES = {
    "mean over many tokens": (
        "return self.l(x).mean(1)",
        "self.l = nn.Linear(1024, 256)",
        "torch.randn(4, 1, 1024) + torch.randn(4, 1024, 1024)",
        "linear_reduce_rows",
    ),
    "mean over an image": (
        "return self.c(x).mean((2, 3))",
        "self.c = nn.ConvTranspose2d(32, 16, 3, stride=2)",
        "torch.randn(4, 32, 1, 1) + torch.randn(4, 32, 96, 96)",
        "conv_reduce",
    ),
    "sum over features": (
        "return self.l(x).sum(1)",
        "self.l = nn.Linear(2048, 1024)",
        "torch.randn(256, 2048)",
        "linear_reduce",
    ),
    "pooled features": (
        "return F.avg_pool1d(self.l(x), 16)",
        "self.l = nn.Linear(1024, 1024)",
        "torch.randn(256, 1024)",
        "linear_avg_pool",
    ),
    "pooled image": (
        "return F.avg_pool2d(self.c(x), 4)",
        "self.c = nn.Conv2d(16, 32, 3)",
        "torch.randn(4, 16, 66, 66)",
        "conv_avg_pool",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rewrite_in_float32_stays_near_the_references_own_error(problem_of, name):
    forward, init, given, rule = CASES[name]
    problem = problem_of(forward, init=init, inputs=(given,), dtype=None)
    study = Study(problem, mode="train", device="cpu", languages=("torch",))
    candidate = study.candidates(None, mode="initial", limit=1)[0]
    assert rule in candidate.strategy
    old, new = types.ModuleType("old"), types.ModuleType("new")
    exec(problem.source, old.__dict__)
    exec(candidate.source, new.__dict__)
    torch.manual_seed(1)
    reference, rewritten = old.Model(), new.ModelNew()
    rewritten.load_state_dict(reference.state_dict())
    (x,) = old.get_inputs()
    with torch.no_grad():
        exact = copy.deepcopy(reference).double()(x.double())
        reference_error = (reference(x) - exact).abs().max()
        assert (rewritten(x) - exact).abs().max() <= 5 * reference_error
