import pytest

LINEAR = {"init": "self.l = nn.Linear(6, 8)"}

CASES = [
    ("linear_reduce", "return self.l(x).sum(1)", LINEAR),
    ("linear_reduce", "return self.l(x).mean(dim=-1, keepdim=True)", LINEAR),
    ("linear_reduce", "return self.l(x).sum()", LINEAR),
    (
        "linear_reduce",
        "return self.l(x).mean((0, 2))",
        LINEAR | {"inputs": ("torch.randn(4, 3, 6)",)},
    ),
    (
        "linear_reduce",
        "return (x @ self.w.T).sum(-1)",
        {"init": "self.w = nn.Parameter(torch.randn(8, 6))"},
    ),
    (
        "linear_reduce",
        "return torch.matmul(x, y).mean(1)",
        {"inputs": ("torch.randn(4, 6)", "torch.randn(6, 8)"), "names": "x, y"},
    ),
    (
        "linear_reduce_rows",
        "return self.l(x).mean(1)",
        LINEAR | {"inputs": ("torch.randn(4, 3, 6)",)},
    ),
    (
        "linear_reduce_rows",
        "return self.l(x).sum((0, 1))",
        LINEAR | {"inputs": ("torch.randn(4, 3, 6)",)},
    ),
    ("linear_avg_pool", "return F.avg_pool1d(self.l(x).unsqueeze(1), 4).squeeze(1)", LINEAR),
    ("linear_avg_pool", "return F.avg_pool1d(self.l(x), 4)", LINEAR),
    ("linear_avg_pool", "return F.avg_pool1d(self.l(x), 3, 2, 1, count_include_pad=False)", LINEAR),
    ("linear_avg_pool", "return F.avg_pool1d(self.l(x), 3, ceil_mode=True)", LINEAR),
    ("linear_group_reduce", "return self.l(x).view(4, 2, 4).sum(2)", LINEAR),
    ("linear_group_reduce", "return self.l(x).view(4, 2, 4).mean(1)", LINEAR),
    (
        "linear_group_reduce",
        "return self.l(x).view(4, 2, 2, 2).sum((0, 1, 3), keepdim=True)",
        LINEAR,
    ),
    (
        "linear_linear",
        "return self.b(self.a(x))",
        {"init": "self.a = nn.Linear(6, 8)\nself.b = nn.Linear(8, 3)"},
    ),
    (
        "linear_linear",
        "return self.b(self.a(x))",
        {"init": "self.a = nn.Linear(6, 8, bias=False)\nself.b = nn.Linear(8, 3)"},
    ),
    (
        "linear_linear",
        "return x @ y @ z",
        {
            "inputs": ("torch.randn(4, 6)", "torch.randn(6, 8)", "torch.randn(8, 2)"),
            "names": "x, y, z",
        },
    ),
    (
        "linear_of_product",
        "return x @ (y @ z)",
        {
            "inputs": ("torch.randn(4, 6)", "torch.randn(6, 8)", "torch.randn(8, 2)"),
            "names": "x, y, z",
        },
    ),
    (
        "linear_of_product",
        "return F.linear(x, y @ z)",
        {
            "inputs": ("torch.randn(4, 6)", "torch.randn(3, 8)", "torch.randn(8, 6)"),
            "names": "x, y, z",
        },
    ),
    (
        "matmul_chain",
        "return x @ y @ z",
        {
            "inputs": ("torch.randn(2, 4, 6)", "torch.randn(2, 6, 8)", "torch.randn(2, 8, 3)"),
            "names": "x, y, z",
        },
    ),
    (
        "matmul_chain",
        "return torch.bmm(x, torch.bmm(y, z))",
        {
            "inputs": ("torch.randn(2, 4, 6)", "torch.randn(2, 6, 8)", "torch.randn(2, 8, 3)"),
            "names": "x, y, z",
        },
    ),
    (
        "linear_of_matmul",
        "return (x @ y) @ self.w",
        {
            "init": "self.w = nn.Parameter(torch.randn(8, 3))",
            "inputs": ("torch.randn(2, 4, 6)", "torch.randn(2, 6, 8)"),
            "names": "x, y",
        },
    ),
    (
        "matmul_of_linear",
        "return x @ (y @ self.w)",
        {
            "init": "self.w = nn.Parameter(torch.randn(8, 3))",
            "inputs": ("torch.randn(2, 4, 6)", "torch.randn(2, 6, 8)"),
            "names": "x, y",
        },
    ),
    (
        "matmul_reduce",
        "return torch.bmm(x, y).sum(-1)",
        {"inputs": ("torch.randn(2, 4, 6)", "torch.randn(2, 6, 8)"), "names": "x, y"},
    ),
    (
        "matmul_reduce",
        "return (x @ y).mean((1, 2))",
        {"inputs": ("torch.randn(2, 4, 6)", "torch.randn(2, 6, 8)"), "names": "x, y"},
    ),
    (
        "matmul_reduce",
        "return (x @ y).sum(-2, keepdim=True)",
        {"inputs": ("torch.randn(5, 2, 4, 6)", "torch.randn(2, 6, 8)"), "names": "x, y"},
    ),
    (
        "diagonal_of_product",
        "return torch.diagonal(x @ y.T)",
        {"inputs": ("torch.randn(4, 6)", "torch.randn(4, 6)"), "names": "x, y"},
    ),
    (
        "diagonal_times",
        "return torch.diag(d) @ x",
        {"inputs": ("torch.randn(4)", "torch.randn(4, 6)"), "names": "d, x"},
    ),
    (
        "diagonal_times",
        "return x @ torch.diag(d)",
        {"inputs": ("torch.randn(6)", "torch.randn(4, 6)"), "names": "d, x"},
    ),
    ("factor_out_of_linear", "return F.linear(x * 0.5, self.l.weight)", LINEAR),
    ("factor_out_of_linear", "return F.linear(x, self.l.weight / 3)", LINEAR),
    (
        "factor_out_of_matmul",
        "return torch.bmm(x * 0.5, y / 7)",
        {"inputs": ("torch.randn(2, 4, 6)", "torch.randn(2, 6, 8)"), "names": "x, y"},
    ),
    ("fold_scale", "return self.l(x) * 2.5", LINEAR),
    (
        "fold_scale",
        "return self.l(x) / self.s",
        {"init": "self.l = nn.Linear(6, 8)\nself.s = nn.Parameter(torch.randn(8))"},
    ),
    (
        "fold_term",
        "return self.l(x) - self.s",
        {"init": "self.l = nn.Linear(6, 8)\nself.s = nn.Parameter(torch.randn(8))"},
    ),
    (
        "fold_term",
        "return self.l(x) - self.s",
        {"init": "self.l = nn.Linear(6, 8, bias=False)\nself.s = nn.Parameter(torch.randn(1))"},
    ),
    (
        "pick_before_linear",
        "return self.l(x)[:, -1]",
        LINEAR | {"inputs": ("torch.randn(4, 3, 6)",)},
    ),
    ("pick_before_linear", "return self.l(x)[:, 2:5]", LINEAR),
]


@pytest.mark.parametrize(
    ("name", "forward", "case"), CASES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_rule_fires_and_keeps_the_value(fire, name, forward, case):
    fired, error = fire(name, forward, **case)
    assert fired
    assert error < 1e-13


NOT = [
    ("linear_reduce", "return F.relu(self.l(x)).sum(1)", LINEAR),
    ("linear_reduce", "return self.l(x).sum(0)", LINEAR),
    ("linear_reduce_rows", "return self.l(x).sum(1)", LINEAR),
    ("linear_avg_pool", "return F.avg_pool1d(self.l(x).T, 2)", LINEAR),
    ("linear_avg_pool", "return F.avg_pool1d(self.l(x).view(4, 2, 4), 2)", LINEAR),
    ("linear_group_reduce", "return self.l(x).view(2, 16).sum(1)", LINEAR),
    (
        "linear_linear",
        "return self.b(torch.tanh(self.a(x)))",
        {"init": "self.a = nn.Linear(6, 8)\nself.b = nn.Linear(8, 3)"},
    ),
    (
        "diagonal_times",
        "return torch.diag(d, 1) @ x",
        {"inputs": ("torch.randn(3)", "torch.randn(4, 6)"), "names": "d, x"},
    ),
    ("fold_scale", "return self.l(x) * x[:, :1]", LINEAR),
    ("fold_term", "return self.l(x) + x[:, :1]", LINEAR),
    (
        "fold_term",
        "y = self.l(x)\nreturn y + self.s, y",
        {"init": "self.l = nn.Linear(6, 8)\nself.s = nn.Parameter(torch.randn(8))"},
    ),
    ("factor_out_of_linear", "return self.l(x * 0.5)", LINEAR),
    (
        "matmul_chain",
        "return torch.softmax(x @ y, -1) @ z",
        {
            "inputs": ("torch.randn(2, 4, 6)", "torch.randn(2, 6, 8)", "torch.randn(2, 8, 3)"),
            "names": "x, y, z",
        },
    ),
]


@pytest.mark.parametrize(
    ("name", "forward", "case"), NOT, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_rule_leaves_alone_what_it_must_not_touch(fire, name, forward, case):
    fired, error = fire(name, forward, **case)
    assert fired == 0
    assert error == 0.0
