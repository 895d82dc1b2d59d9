import pytest
import torch

from kopt.actors.rewriter.capture import capture
from kopt.actors.rewriter.graph import aten
from kopt.actors.rewriter.plan import Plan
from kopt.actors.rewriter.study import Study

ROW = {"inputs": ("torch.randn(4, 6)",)}


def targets(problem):
    graph = capture(problem, mode="train").graph.graph
    return [node.target for node in graph.nodes if node.op == "call_function"]


FORMS = [
    ("x.unsqueeze(1).flatten(1).view(4, 6)", []),
    ("x.view(2, 2, 6).squeeze()", [aten.reshape.default]),
    ("x.t().transpose(0, 1)", []),
    ("x.unsqueeze(0).transpose(0, 1)", [aten.reshape.default]),
    ("x.clone().contiguous().detach() * 2", [aten.mul.Tensor]),
    ("x.to(torch.float64).type_as(x) * 2", [aten.mul.Tensor]),
    ("F.dropout(x, 0.0) + 1", [aten.add.Tensor]),
    ("torch.max(x, dim=1)[0]", [aten.amax.default]),
    ("torch.max(x, dim=1).indices", [aten.max.dim, "getitem"]),
    ("x @ x.t()", [aten.linear.default]),
    ("torch.add(x, x, alpha=2)", [aten.mul.Tensor, aten.add.Tensor]),
    ("torch.minimum(x, torch.tensor(0.5))", [aten.clamp_max.default]),
    ("torch.multiply(x, 2).divide(3)", [aten.mul.Tensor, aten.div.Tensor]),
    ("F.adaptive_avg_pool1d(x, 1)", [aten.mean.dim]),
    ("F.adaptive_avg_pool1d(x, 3)", [aten.avg_pool1d.default]),
    ("F.adaptive_avg_pool1d(x, 4)", [aten.adaptive_avg_pool1d.default]),
]


@pytest.mark.parametrize(("expression", "expected"), FORMS, ids=[e for e, _ in FORMS])
def test_things_have_one_form(problem_of, expression, expected):
    found = targets(problem_of(f"return {expression}", **ROW))
    assert [t if isinstance(t, torch._ops.OpOverload) else t.__name__ for t in found] == expected


def test_what_nobody_reads_is_gone(problem_of):
    problem = problem_of(
        "y = self.l(x); z = torch.exp(y)\nreturn x + 1", init="self.l = nn.Linear(6, 6)", **ROW
    )
    assert targets(problem) == [aten.add.Tensor]


def test_a_reference_of_many_gigabytes_is_read_without_memory(problem_of):
    problem = problem_of(
        "return self.l(x).sum(1)",
        init="self.l = nn.Linear(60000, 60000)",
        inputs=("torch.rand(50000, 60000)",),
        dtype=None,
    )
    captured = capture(problem, mode="train")
    (argument,) = captured.arguments.values()
    assert argument.shape == (50000, 60000)
    assert sorted(captured.attributes.values()) == ["l.bias", "l.weight"]


def test_values_that_the_constructor_needs_are_made_real(problem_of):
    init = """
        w = torch.ones(6)
        self.k = 2 if float(w.sum()) > 5 else 3
        self.w = nn.Parameter(w * self.k)
    """
    found = targets(problem_of("return x * self.w * self.k", init=init, **ROW))
    assert found == [aten.mul.Tensor, aten.mul.Tensor]


def test_defaults_that_the_source_changes_do_not_stay(problem_of):
    problem = problem_of("return x + 1", dtype=None, **ROW)
    changed = "import torch\ntorch.set_default_dtype(torch.float64)\n" + problem.source
    captured = capture(type(problem)(name="x", source=changed), mode="train")
    (argument,) = captured.arguments.values()
    assert argument.dtype == torch.float64
    assert torch.get_default_dtype() == torch.float32


CHAINS = [
    (
        "return torch.logsumexp((self.l(x) - self.s).mean(1, keepdim=True), 1, keepdim=True) + x",
        "self.l = nn.Linear(4096, 4096)\nself.s = nn.Parameter(torch.randn(4096))",
        "torch.rand(1024, 4096)",
        {"reduce_single", "term_out_of_sum", "linear_reduce"},
    ),
    (
        "return (self.c(x) * 0.5).mean((2, 3), keepdim=True).mean((2, 3), keepdim=True)",
        "self.c = nn.ConvTranspose2d(64, 96, 3, stride=2, padding=1, output_padding=1)",
        "torch.rand(16, 64, 96, 96)",
        {"factor_out_of_sum", "conv_reduce"},
    ),
    (
        "return (F.avg_pool3d(self.c(x) * self.k, 2) + self.b) * 0.5",
        "self.c = nn.ConvTranspose3d(3, 16, 3, stride=2, padding=1)\n"
        "self.k = nn.Parameter(torch.tensor(0.5))\nself.b = nn.Parameter(torch.randn(16, 1, 1, 1))",
        "torch.rand(32, 3, 16, 32, 32)",
        {"factor_out_of_pool", "conv_transpose_avg_pool"},
    ),
    (
        "return F.gelu(self.p(self.l(x).unsqueeze(1)).squeeze(1)).amax(1)",
        "self.l = nn.Linear(4096, 4096)\nself.p = nn.AvgPool1d(16)",
        "torch.rand(1024, 4096)",
        {"linear_avg_pool"},
    ),
]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(("forward", "init", "given", "expected"), CHAINS, ids=range(len(CHAINS)))
def test_rules_compose_where_they_pay(problem_of, device, forward, init, given, expected):
    problem = problem_of(forward, init=init, inputs=(given,), dtype=None)
    study = Study(problem, mode="train", device=device, languages=("torch",))
    assert expected <= set(study.form(Plan()).applied)


def test_a_rule_that_would_cost_more_is_not_taken(problem_of):
    # One row: W is read once either way, and its product needs 4096 times the work of the two.
    problem = problem_of(
        "return self.b(self.a(x))",
        init="self.a = nn.Linear(2048, 2048)\nself.b = nn.Linear(2048, 2048)",
        inputs=("torch.rand(1, 2048)",),
        dtype=None,
    )
    study = Study(problem, mode="train", device="cuda", languages=("torch",))
    assert study.form(Plan()).applied == ()


def test_a_sum_of_two_layers_is_reduced_by_way_of_a_step_that_does_not_pay(problem_of):
    problem = problem_of(
        "return (self.a(x) + self.b(x)).sum(1)",
        init="self.a = nn.Linear(1024, 4096)\nself.b = nn.Linear(1024, 4096)",
        inputs=("torch.rand(2048, 1024)",),
        dtype=None,
    )
    study = Study(problem, mode="train", device="cpu", languages=("torch",))
    assert study.form(Plan()).applied.count("linear_reduce") == 2
