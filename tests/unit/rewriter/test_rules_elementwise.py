import pytest

ROWS = {"inputs": ("torch.randn(4, 6)", "torch.randn(6)"), "names": "x, s"}
IMAGE = {"inputs": ("torch.randn(2, 6, 8, 8)", "torch.randn(6, 1, 1)"), "names": "x, s"}
COLUMN = {"inputs": ("torch.randn(4, 6)", "torch.randn(4, 1)"), "names": "x, c"}

CASES = [
    ("reduce_single", "return torch.logsumexp(x.sum(1, keepdim=True), 1)", ROWS),
    ("reduce_single", "return torch.max(x[:, :1], dim=1, keepdim=True)[0].mean(1)", ROWS),
    ("reduce_single", "return x.unsqueeze(1).sum((0, 1))", ROWS),
    ("reduce_single", "return x[:1].amin((0, 1))", ROWS),
    ("scan_single", "return x[:, :1].cumsum(1).flip(1)", ROWS),
    ("softmax_single", "return x + torch.softmax(x[:, :1], 1)", ROWS),
    ("softmax_single", "return x + torch.log_softmax(x[:, :1], 1)", ROWS),
    ("pool_single", "return F.avg_pool2d(F.max_pool2d(x, 1), 1)", IMAGE),
    ("factor_out_of_sum", "return (x * 3).sum(1)", ROWS),
    ("factor_out_of_sum", "return (x / c).mean((0, 1))", COLUMN),
    ("factor_out_of_sum", "return (x * s).mean((2, 3), keepdim=True)", IMAGE),
    ("factor_out_of_sum", "return (s * x).sum((1, 2))", IMAGE),
    ("term_out_of_sum", "return (x - s).mean(1, keepdim=True)", ROWS),
    ("term_out_of_sum", "return (s - x).sum((0, 1))", ROWS),
    ("term_out_of_sum", "return (x + 2).sum((0, 1))", ROWS),
    ("term_out_of_sum", "return (3 - x).sum(1)", ROWS),
    ("term_out_of_sum", "return (x + s).sum((1, 2, 3))", IMAGE),
    ("term_out_of_sum", "return (x + c).sum(0)", COLUMN),
    ("sum_of_sums", "return x.sum(3, keepdim=True).sum((1, 2))", IMAGE),
    ("sum_of_sums", "return x.mean(3, keepdim=True).mean((2, 3))", IMAGE),
    ("factor_out_of_pool", "return F.avg_pool2d(x * s, 3, padding=1)", IMAGE),
    ("term_out_of_pool", "return F.avg_pool2d(x - s, 2)", IMAGE),
    (
        "term_out_of_pool",
        "return F.avg_pool1d(c + x.unsqueeze(1), 2)",
        {"inputs": ("torch.randn(4, 6)", "torch.randn(4, 1, 1)"), "names": "x, c"},
    ),
    ("pool_of_pool", "return F.avg_pool2d(F.avg_pool2d(x, 2), 2)", IMAGE),
    ("pool_of_pool", "return F.avg_pool2d(F.avg_pool2d(x, 2), 3, 1)", IMAGE),
    ("sum_of_pool", "return F.avg_pool2d(x, 2).mean((2, 3))", IMAGE),
    ("sum_of_pool", "return F.avg_pool2d(x, 4).sum((1, 2, 3))", IMAGE),
    ("neutral_number", "return x * 1 + 0", ROWS),
    ("number_chain", "return x * 3 / 4", ROWS),
    ("number_chain", "return x / 3 / 4", ROWS),
    ("number_chain", "return x / 3 * 4", ROWS),
    ("self_add", "return x * 0.5 + x", ROWS),
    ("self_add", "return x - x * 0.25", ROWS),
    ("self_add", "return x + x", ROWS),
    ("self_add", "return x / 4 - x", ROWS),
    ("double_negation", "return -(-x)", ROWS),
    ("clamp_of_clamp", "return torch.clamp(torch.clamp(x, -1, 0.5), -0.3, 2)", ROWS),
    ("clamp_of_clamp", "return torch.clamp(torch.clamp(x, -1, -0.5), 0.3, 2)", ROWS),
    ("clamp_of_clamp", "return F.hardtanh(F.relu(x))", ROWS),
    ("clamp_of_clamp", "return F.relu(torch.clamp(x, max=0.3))", ROWS),
    ("idle_clamp", "return F.relu(torch.sigmoid(x))", ROWS),
    ("idle_clamp", "return torch.clamp(torch.tanh(x), -1, 1)", ROWS),
    ("idle_clamp", "return F.relu(F.relu(x))", ROWS),
    ("idle_clamp", "return F.relu(x).abs()", ROWS),
    ("leaky_of_positive", "return F.leaky_relu(F.relu(x))", ROWS),
    ("leaky_of_positive", "return F.leaky_relu(F.leaky_relu(x, 0.1), 0.2)", ROWS),
    ("extremum_of_rising", "return torch.sigmoid(x).amax(1)", ROWS),
    ("extremum_of_rising", "return F.relu(x).amin((0, 1))", ROWS),
    ("extremum_of_rising", "return F.max_pool2d(torch.clamp(x, -0.5, 0.5), 3, 2, 1)", IMAGE),
    ("extremum_of_scaled", "return (x * 2.5).amax(1)", ROWS),
    ("extremum_of_scaled", "return (x * -2.5).amax(1)", ROWS),
    ("extremum_of_scaled", "return F.max_pool2d(x / 2, 2)", IMAGE),
    ("extremum_of_shifted", "return (x - 2).amin(1)", ROWS),
    ("extremum_of_shifted", "return F.max_pool2d(x + s, 2)", IMAGE),
    ("extremum_of_shifted", "return (x + s).amax((2, 3))", IMAGE),
    ("extremum_of_extremum", "return x.amax(3, keepdim=True).amax(2)", IMAGE),
    ("softmax_of_shifted", "return torch.softmax(x + c, 1)", COLUMN),
    ("softmax_of_shifted", "return torch.log_softmax(x - 3, 1)", COLUMN),
    ("layer_norm_of_shifted", "return F.layer_norm(x + c, (6,))", COLUMN),
    ("norm_of_shifted", "return F.instance_norm(x + s)", IMAGE),
    ("norm_of_shifted", "return F.group_norm(x + 3, 2)", IMAGE),
    ("centred_term", "y = x + c\nreturn y - y.mean(1, keepdim=True)", COLUMN),
    ("pick_before_elementwise", "return torch.tanh(x)[:, 1]", ROWS),
    ("pick_before_elementwise", "return (x * c)[:, 1:4]", COLUMN),
    ("pick_before_elementwise", "return (x * s + 2)[:, 1]", ROWS),
    ("pick_before_elementwise", "return (x + s)[1]", ROWS),
    ("pick_before_row_wise", "return F.layer_norm(x, (6,))[-1]", ROWS),
    ("pick_before_row_wise", "return torch.softmax(x, 1)[0, :, 1:]", IMAGE),
    ("last_of_running_sum", "return torch.cumsum(x, 1)[:, -1]", ROWS),
]


@pytest.mark.parametrize(
    ("name", "forward", "case"), CASES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_rule_fires_and_keeps_the_value(fire, name, forward, case):
    fired, error = fire(name, forward, **case)
    assert fired
    assert error < 1e-13


NOT = [
    ("reduce_single", "return x.sum(1)", ROWS),
    ("softmax_single", "return torch.softmax(x, 1)", ROWS),
    ("factor_out_of_sum", "return (x * s).sum(1)", ROWS),
    ("factor_out_of_sum", "return (x**-1).sum(1)", ROWS),
    ("term_out_of_sum", "return (x * s).sum(1)", ROWS),
    ("sum_of_sums", "return x.mean(3, keepdim=True).sum(2)", IMAGE),
    ("factor_out_of_pool", "return F.avg_pool2d(x * x, 2)", IMAGE),
    ("term_out_of_pool", "return F.avg_pool2d(x + s, 3, padding=1)", IMAGE),
    ("term_out_of_pool", "return F.avg_pool2d(3 - x, 2)", IMAGE),
    ("pool_of_pool", "return F.avg_pool2d(F.avg_pool2d(x, 2, 1), 2)", IMAGE),
    ("sum_of_pool", "return F.avg_pool2d(x, 3).mean((2, 3))", IMAGE),
    ("sum_of_pool", "return F.avg_pool2d(x, 2, 1).mean((2, 3))", IMAGE),
    ("self_add", "return x - x", ROWS),
    ("self_add", "return x * -1.0 + x", ROWS),
    ("number_chain", "return x * 1e-20 * 1e-20", ROWS),
    ("clamp_of_clamp", "y = torch.relu(x)\nreturn torch.clamp(y, 0, 1), y", ROWS),
    ("idle_clamp", "return F.relu(torch.tanh(x))", ROWS),
    ("idle_clamp", "return torch.clamp(x, -9e9, 9e9)", ROWS),
    ("leaky_of_positive", "return F.leaky_relu(F.leaky_relu(x, -0.1), 0.2)", ROWS),
    ("extremum_of_rising", "return F.gelu(x).amax(1)", ROWS),
    ("extremum_of_rising", "return x.abs().amax(1)", ROWS),
    ("extremum_of_scaled", "return (x * s).amax(1)", ROWS),
    ("extremum_of_scaled", "return F.max_pool2d(x * -2, 2)", IMAGE),
    ("extremum_of_shifted", "return (2 - x).amax(1)", ROWS),
    ("extremum_of_shifted", "return (x + s).amax(1)", ROWS),
    ("softmax_of_shifted", "return torch.softmax(x + s, 1)", ROWS),
    ("softmax_of_shifted", "return torch.softmax(1 - x, 1)", ROWS),
    ("layer_norm_of_shifted", "return F.layer_norm(x + s, (6,))", ROWS),
    ("norm_of_shifted", "return F.group_norm(x + s, 2)", IMAGE),
    ("pick_before_elementwise", "y = torch.tanh(x)\nreturn y[:, 1], y", ROWS),
    ("pick_before_row_wise", "return torch.softmax(x, 1)[:, 2:]", IMAGE),
    ("last_of_running_sum", "return torch.cumsum(x, 1)[:, 2]", ROWS),
    ("last_of_running_sum", "return torch.cumsum(x, 0)[:, -1]", ROWS),
]


@pytest.mark.parametrize(
    ("name", "forward", "case"), NOT, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_rule_leaves_alone_what_it_must_not_touch(fire, name, forward, case):
    fired, error = fire(name, forward, **case)
    assert fired == 0
    assert error == 0.0


def test_what_running_statistics_would_miss_is_kept(fire):
    case = {"init": "self.n = nn.InstanceNorm2d(6, track_running_stats=True)"} | IMAGE
    assert fire("norm_of_shifted", "return self.n(x + s)", **case)[0] == 0
