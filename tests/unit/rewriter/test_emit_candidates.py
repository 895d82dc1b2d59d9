import ast
import types

import pytest
import torch

from kopt.actors.rewriter.graph import NotRewritable
from kopt.actors.rewriter.plan import Plan, plan_of
from kopt.actors.rewriter.study import Study
from kopt.errors import ProblemError
from kopt.problem import Problem

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"


def imported(source):
    module = types.ModuleType("candidate")
    exec(compile(source, "candidate", "exec"), module.__dict__)
    return module


def written(source, *, mode="train", languages=("torch",)):
    study = Study(Problem(name="p", source=source), mode=mode, device="cpu", languages=languages)
    return study.candidates(None, mode="initial", limit=1)[0]


def run_both(source, *, mode="train", languages=("torch",)):
    """Give what reference and candidate answer to equal weights and inputs, and both modules."""
    reference, candidate = (
        imported(source),
        imported(written(source, mode=mode, languages=languages).source),
    )
    init = reference.get_init_inputs() if hasattr(reference, "get_init_inputs") else []
    torch.manual_seed(3)
    old = reference.Model(*init)
    torch.manual_seed(3)
    new = candidate.ModelNew(*init)
    assert [n for n, _ in old.named_parameters()] == [n for n, _ in new.named_parameters()]
    old.train(mode == "train")
    new.train(mode == "train")
    inputs = reference.get_inputs()
    with torch.no_grad():
        return old(*inputs), new(*inputs), old, new


def test_the_file_keeps_the_constructor_and_leaves_out_the_inputs():
    source = (
        HEAD
        + "WIDTH = 8\nBATCH = 4\n\n\ndef start(x):\n    return nn.init.normal_(x, std=WIDTH)\n\n\n"
        "class Model(nn.Module):\n    '''Reference.'''\n    def __init__(self, n):\n"
        "        super(Model, self).__init__()\n"
        "        self.w = nn.Parameter(torch.empty(n, 3))  # kept\n"
        "        start(self.w)\n        self._more()\n\n"
        "    def _more(self):\n        self.k = 2.0\n\n"
        "    def helper(self, x):\n        return x @ self.w\n\n    def forward(self, x):\n"
        "        return self.helper(x) * self.k\n\n\n"
        "def get_inputs():\n    return [torch.randn(BATCH, WIDTH)]\n\n\n"
        "def get_init_inputs():\n    return [WIDTH]\n"
    )
    text = written(source).source
    names = {n.name for n in ast.parse(text).body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    assert names == {"start", "ModelNew"}
    assert "super(ModelNew, self)" in text
    assert "# kept" in text
    assert "BATCH" not in text
    assert "def helper" not in text
    assert "def _more" in text
    assert plan_of(text) == Plan()
    old, new, *_ = run_both(source)
    assert torch.allclose(old, new)


def case(init, forward, inputs, *, names="x"):
    body = "".join(f"        {line}\n" for line in init.split("; "))
    steps = "".join(f"        {line}\n" for line in forward.split("; "))
    return (
        f"{HEAD}\nclass Model(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n{body}\n"
        f"    def forward(self, {names}):\n{steps}\n\ndef get_inputs():\n    return [{inputs}]\n"
    )


SOURCES = {
    "list of layers": case(
        "self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 5), nn.ReLU())])",
        "x = self.layers[0](x); return self.layers[1](x)",
        "torch.randn(3, 4)",
    ),
    "dict of layers": case(
        "self.layers = nn.ModuleDict({'a b': nn.Linear(4, 4), 'class': nn.Linear(4, 2)})",
        "return self.layers['class'](torch.tanh(self.layers['a b'](x)))",
        "torch.randn(3, 4)",
    ),
    "two results": case("pass", "return x + 1, torch.exp(x)", "torch.randn(3, 4)"),
    "a dict": case("pass", "return {'a': x * 2, 'b': [x, x.sum()]}", "torch.randn(3, 4)"),
    "variadic": case(
        "pass", "return xs[0] - xs[1] / 2", "torch.randn(3, 4), torch.randn(4)", names="*xs"
    ),
    "nested": case(
        "pass", "return x[0] @ x[1]['w']", "[torch.randn(3, 4), {'w': torch.randn(4, 2)}]"
    ),
    "a constant": case(
        "pass", "return x * n + float(k)", "torch.randn(3, 4), 3, '2.5'", names="x, n, k"
    ),
    "in place": case(
        "self.c = nn.Conv2d(2, 3, 3)",
        "x = F.relu(self.c(x), inplace=True); x += 1; x.mul_(2); return x",
        "torch.randn(2, 2, 6, 6)",
    ),
    "write to a slice": case(
        "pass", "y = x * 2; y[:, 0] = x[:, 1]; return y + 1", "torch.randn(3, 4)"
    ),
    "literal": case(
        "pass", "return torch.min(x, torch.tensor(0.25)) * torch.tensor(2.0)", "torch.randn(3, 4)"
    ),
    "literal vector": case(
        "pass", "return x * torch.tensor([1.0, 2.0, 3.0, 4.0])", "torch.randn(3, 4)"
    ),
    "integers": case(
        "self.e = nn.Embedding(9, 4)",
        "return self.e(i).sum(1)",
        "torch.randint(0, 9, (5, 3))",
        names="i",
    ),
    "masks": case(
        "pass",
        "return torch.where(m, x, -x).masked_fill(m, 0.5)",
        "torch.randn(3, 4), torch.rand(3, 4) > 0.5",
        names="x, m",
    ),
    "a scalar": case("pass", "return x.mean() * 3", "torch.randn(3, 4)"),
    "the input itself": case("self.d = nn.Dropout(0.0)", "return self.d(x)", "torch.randn(3, 4)"),
    "new tensors": case(
        "pass", "return x + torch.arange(4, device=x.device) + torch.zeros(4)", "torch.randn(3, 4)"
    ),
    "a plain attribute": case(
        "self.m = torch.tril(torch.ones(4, 4))", "return x @ self.m", "torch.randn(3, 4)"
    ),
    "names that clash": case(
        "self.w = nn.Parameter(torch.randn(4))",
        "return torch.exp(y) + torch.tanh(weight * self.w)",
        "torch.randn(3, 4), torch.randn(4)",
        names="y, weight",
    ),
    "an empty tensor": case("pass", "return torch.cat([x, x * 2])", "torch.randn(0, 4)"),
    "attention": case(
        "pass",
        "return F.scaled_dot_product_attention(q, q, q, is_causal=True)",
        "torch.randn(2, 2, 5, 4)",
        names="q",
    ),
    "gru": case(
        "self.g = nn.GRU(4, 5, batch_first=True)",
        "return self.g(x)[0][:, -1]",
        "torch.randn(2, 3, 4)",
    ),
    "padding and views": case(
        "pass",
        "y = F.pad(x, (1, 1)); a, b = y.chunk(2, dim=-1); "
        "return a.transpose(0, 1).reshape(-1) * b.flatten()",
        "torch.randn(3, 4)",
    ),
    "norms": case(
        "self.n = nn.LayerNorm(4); self.g = nn.GroupNorm(2, 4)",
        "return self.g(self.n(x)) + F.rms_norm(x, (4,))",
        "torch.randn(3, 4)",
    ),
    "a default": case(
        "pass",
        "return x * scale if mask is None else x",
        "torch.randn(3, 4)",
        names="x, scale=2.0, mask=None",
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_candidate_answers_as_the_reference(name):
    old, new, *_ = run_both(SOURCES[name])
    leaves = torch.utils._pytree.tree_leaves(old), torch.utils._pytree.tree_leaves(new)
    assert type(old) is type(new)
    for one, other in zip(*leaves, strict=True):
        assert one.dtype == other.dtype
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-6)


def test_an_input_given_back_is_copied():
    source = SOURCES["the input itself"]
    reference, candidate = imported(source), imported(written(source).source)
    x = reference.get_inputs()[0]
    assert candidate.ModelNew()(x).data_ptr() != x.data_ptr()


def test_running_statistics_move_as_in_the_reference():
    source = case(
        "self.c = nn.Conv2d(2, 3, 3); self.n = nn.BatchNorm2d(3)",
        "return F.relu(self.n(self.c(x)))",
        "torch.randn(4, 2, 6, 6)",
    )
    old, new, reference, candidate = run_both(source)
    assert torch.allclose(old, new, atol=1e-5)
    assert candidate.n.num_batches_tracked == 1
    assert torch.allclose(reference.n.running_mean, candidate.n.running_mean)
    assert torch.allclose(reference.n.running_var, candidate.n.running_var)


def test_weights_changed_after_construction_are_used():
    source = case("self.l = nn.Linear(64, 512)", "return self.l(x).sum(1)", "torch.randn(256, 64)")
    text = written(source)
    assert "linear_reduce" in text.strategy
    reference, candidate = imported(source).Model(), imported(text.source).ModelNew()
    x = torch.randn(256, 64)
    candidate.load_state_dict(reference.state_dict())
    assert torch.allclose(reference(x), candidate(x), atol=1e-3)
    with torch.no_grad():
        reference.l.weight.mul_(2)
        candidate.l.weight.mul_(2)
    assert torch.allclose(reference(x), candidate(x), atol=1e-3)


def test_other_shapes_are_refused_in_a_line():
    source = SOURCES["two results"]
    candidate = imported(written(source).source).ModelNew()
    with pytest.raises(
        ValueError, match=r"expected x \(3, 4\) torch.float32, found \(5, 4\) torch"
    ):
        candidate(torch.randn(5, 4))
    with pytest.raises(ValueError, match="float64"):
        candidate(torch.randn(3, 4, dtype=torch.float64))


def test_another_constant_is_refused():
    candidate = imported(written(SOURCES["a constant"]).source).ModelNew()
    with pytest.raises(ValueError, match="expected n to be 3, found 4"):
        candidate(torch.randn(3, 4), 4, "2.5")


def test_a_class_with_two_spaces_and_a_base_class_is_taken_apart():
    source = (
        "from torch import nn\nimport torch\n\nclass Base(nn.Module):\n  def __init__(self):\n"
        "    super().__init__()\n    self.l = nn.Linear(4, 3)\n  def forward(self, x):\n"
        "    return torch.tanh(self.l(x))\n\nclass Model(Base):\n  scale: float = 2.0\n\n"
        "def get_inputs():\n  return [torch.randn(5, 4)]\n"
    )
    old, new, *_ = run_both(source)
    assert torch.allclose(old, new)


def test_a_constant_called_f_does_not_hide_functional():
    source = (
        "import torch\nimport torch.nn as nn\n\nF = 3\n\nclass Model(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.l = nn.Linear(4, F)\n\n"
        "    def forward(self, x):\n        return nn.functional.gelu(self.l(x))\n\n"
        "def get_inputs():\n    return [torch.randn(5, 4)]\n"
    )
    old, new, *_ = run_both(source)
    assert torch.allclose(old, new)


def test_generated_kernels_are_spliced_in():
    source = case(
        "self.l = nn.Linear(6, 8); self.n = nn.LayerNorm(8)",
        "return F.gelu(self.n(self.l(x))) + 1",
        "torch.randn(16, 6)",
    )
    candidate = written(source, languages=("torch", "cpp"))
    assert candidate.language == "cpp"
    assert plan_of(candidate.source).schedule is not None
    old, new, *_ = run_both(source, languages=("torch", "cpp"))
    assert torch.allclose(old, new, atol=1e-5)


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        ("return x if x.sum() > 0 else -x", "export failed"),
        ("return F.dropout(x, 0.5)", "random"),
        ("return x + torch.randn_like(x)", "random"),
        ("x += 1; return x", "changes"),
        ("return x[x > 0]", "depends on data"),
        ("return x.sum().item()", "export failed|no tensor|depends on data"),
    ],
)
def test_what_cannot_be_seen_through_is_said(forward, reason):
    source = case("pass", forward, "torch.randn(3, 4)")
    with pytest.raises(NotRewritable, match=reason):
        written(source)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nothing_of_this_name", "does not import"),
        ("x = 1", "no class Model"),
        ("import torch\n\nclass Model(torch.nn.Module):\n    pass\n", "get_inputs"),
        (case("raise ValueError('no')", "return x", "torch.randn(2)"), "ValueError: no"),
    ],
)
def test_a_problem_that_breaks_its_contract_is_an_error(source, reason):
    with pytest.raises(ProblemError, match=reason):
        written(source)


def test_dropout_is_dropped_in_eval_mode_only():
    source = case("self.d = nn.Dropout(0.5)", "return self.d(x) * 2", "torch.randn(3, 4)")
    old, new, *_ = run_both(source, mode="eval")
    assert torch.equal(old, new)
    with pytest.raises(NotRewritable):
        written(source, mode="train")
