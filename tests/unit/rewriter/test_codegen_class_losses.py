"""Cross entropy in its forms, in C++, against torch in float64."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from kopt.actors.rewriter.capture import capture
from kopt.actors.rewriter.codegen import Schedule, fuse
from kopt.actors.rewriter.codegen.check import loaded, module_source, run_fused

FORWARD = {
    "plain": "F.cross_entropy(x, y)",
    "smoothed": "F.cross_entropy(x, y, label_smoothing=0.1, reduction='none')",
    "smoothed_mean": "F.cross_entropy(x, y, label_smoothing=0.2)",
    "weighted": "F.cross_entropy(x, y, weight=w)",
    "weighted_smoothed": "F.cross_entropy(x, y, weight=w, label_smoothing=0.1)",
    "weighted_smoothed_sum": "F.cross_entropy(x, y, w, label_smoothing=0.1, reduction='sum')",
    "one_class_does_not_count": "F.cross_entropy(x, y, ignore_index=3, label_smoothing=0.1)",
    "probabilities": "F.cross_entropy(x, p)",
    "probabilities_weighted_smoothed": "F.cross_entropy(x, p, weight=w, label_smoothing=0.1)",
    "nll": "F.nll_loss(x.log_softmax(1), y, w)",
}


@pytest.mark.parametrize("shape", [(9, 7), (64, 33), (3, 7, 4, 5)], ids=str)
@pytest.mark.parametrize("name", FORWARD)
def test_class_losses_agree_with_float64(name, shape, tmp_path: Path, problem_of) -> None:
    torch.manual_seed(0)
    rest = [shape[0], *shape[2:]]
    inputs = {
        "x": 3 * torch.randn(shape),
        "y": torch.randint(0, shape[1], rest),
        "p": torch.randn(shape).softmax(1),
        "w": 0.5 + torch.rand(shape[1]),
    }
    made = (
        f"torch.randn{shape}",
        f"torch.randint(0, {shape[1]}, {tuple(rest)})",
        f"torch.randn{shape}",
        f"torch.randn({shape[1]})",
    )
    problem = problem_of(
        f"return {FORWARD[name]}", inputs=made, names=", ".join(inputs), dtype="float32"
    )
    graph = capture(problem, mode="train").graph
    kernels = fuse(graph, device="cpu", schedule=Schedule())
    assert len(kernels) == 1
    module = loaded(module_source(kernels), name=f"losses_{name}_{len(shape)}", folder=tmp_path)
    (found,) = run_fused(graph, list(inputs.values()), kernels, module=module)
    wide = {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()}
    expected = eval(f"lambda x, y, p, w: {FORWARD[name]}", {"F": F})(**wide)
    torch.testing.assert_close(found.double(), expected, rtol=2e-6, atol=1e-6)
