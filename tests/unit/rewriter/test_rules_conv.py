import pytest


def conv(layer, shape, forward_after):
    return {
        "init": f"self.c = nn.{layer}",
        "inputs": (f"torch.randn({shape})",),
        "forward": f"y = self.c(x)\nreturn {forward_after}",
    }


CASES = [
    ("conv_avg_pool", conv("Conv2d(3, 5, 3)", "2, 3, 14, 13", "F.avg_pool2d(y, 4)")),
    (
        "conv_avg_pool",
        conv("Conv2d(3, 5, 3, padding=1)", "2, 3, 14, 13", "F.avg_pool2d(y, (2, 3))"),
    ),
    (
        "conv_avg_pool",
        conv("Conv2d(4, 6, 3, groups=2)", "2, 4, 9, 9", "F.avg_pool2d(y, 3, stride=2)"),
    ),
    ("conv_avg_pool", conv("Conv2d(3, 5, 3, stride=2)", "2, 3, 17, 15", "F.avg_pool2d(y, 2)")),
    ("conv_avg_pool", conv("Conv1d(3, 5, 4)", "2, 3, 14", "F.avg_pool1d(y, 2)")),
    ("conv_avg_pool", conv("Conv3d(2, 3, 2)", "2, 2, 7, 6, 5", "F.avg_pool3d(y, 2)")),
    (
        "conv_transpose_avg_pool",
        conv("ConvTranspose2d(3, 4, 3, stride=2, padding=1)", "2, 3, 5, 6", "F.avg_pool2d(y, 2)"),
    ),
    (
        "conv_transpose_avg_pool",
        conv(
            "ConvTranspose3d(3, 4, 3, stride=2, padding=1)", "2, 3, 4, 5, 6", "F.avg_pool3d(y, 2)"
        ),
    ),
    (
        "conv_transpose_avg_pool",
        conv(
            "ConvTranspose2d(3, 4, 4, stride=2, output_padding=1)",
            "2, 3, 5, 6",
            "F.avg_pool2d(y, 4)",
        ),
    ),
    (
        "conv_transpose_avg_pool",
        conv("ConvTranspose2d(4, 6, 3, groups=2)", "2, 4, 5, 6", "F.avg_pool2d(y, 3, stride=2)"),
    ),
    (
        "conv_transpose_avg_pool",
        conv("ConvTranspose1d(3, 4, 5, stride=3, padding=4)", "2, 3, 9", "F.avg_pool1d(y, 2, 3)"),
    ),
    ("pool_before_pointwise", conv("Conv2d(3, 5, 1)", "2, 3, 8, 9", "F.avg_pool2d(y, 2)")),
    (
        "pool_before_pointwise",
        conv("Conv2d(4, 6, 1, groups=2)", "2, 4, 8, 9", "F.adaptive_avg_pool2d(y, (3, 2))"),
    ),
    ("conv_reduce", conv("Conv2d(3, 5, 3)", "2, 3, 8, 9", "y.mean((2, 3))")),
    (
        "conv_reduce",
        conv("Conv2d(3, 5, 3, padding=2, dilation=2)", "2, 3, 8, 9", "y.sum((2, 3), keepdim=True)"),
    ),
    (
        "conv_reduce",
        conv("Conv2d(3, 5, 3, stride=2, padding=1)", "2, 3, 8, 9", "F.adaptive_avg_pool2d(y, 1)"),
    ),
    ("conv_reduce", conv("Conv2d(4, 6, 3, groups=2)", "2, 4, 8, 9", "y.mean((1, 2, 3))")),
    ("conv_reduce", conv("Conv2d(4, 4, 3, groups=4, bias=False)", "2, 4, 8, 9", "y.sum(3)")),
    ("conv_reduce", conv("Conv1d(3, 5, 3)", "2, 3, 8", "y.sum()")),
    (
        "conv_reduce",
        conv("Conv3d(2, 3, (3, 2, 1), padding=(1, 0, 0))", "2, 2, 5, 6, 7", "y.mean(2)"),
    ),
    (
        "conv_reduce",
        conv(
            "ConvTranspose2d(5, 7, 3, stride=2, padding=1, output_padding=1)",
            "3, 5, 9, 11",
            "y.mean((2, 3))",
        ),
    ),
    (
        "conv_reduce",
        conv("ConvTranspose2d(5, 7, 3)", "3, 5, 9, 11", "y.mean((2, 3), keepdim=True)"),
    ),
    (
        "conv_reduce",
        conv(
            "ConvTranspose2d(4, 6, 3, groups=2, stride=3, dilation=2)",
            "3, 4, 5, 6",
            "y.sum((2, 3))",
        ),
    ),
    (
        "conv_reduce",
        conv("ConvTranspose3d(4, 6, 3, padding=1)", "2, 4, 6, 5, 7", "y.mean(2, keepdim=True)"),
    ),
    (
        "conv_reduce",
        conv(
            "ConvTranspose3d(4, 6, 3, stride=2, padding=1, groups=2, output_padding=1)",
            "2, 4, 3, 5, 4",
            "y.sum((2, 4))",
        ),
    ),
    ("conv_reduce", conv("ConvTranspose1d(4, 6, 3, padding=1)", "2, 4, 2", "y.mean(-1)")),
    ("fold_scale", conv("Conv2d(3, 5, 3)", "2, 3, 8, 9", "y * 0.5")),
    (
        "fold_scale",
        conv(
            "ConvTranspose2d(3, 5, 3)",
            "2, 3, 8, 9",
            "y / torch.arange(1.0, 6.0, dtype=torch.float64).view(5, 1, 1)",
        ),
    ),
    (
        "fold_term",
        conv(
            "Conv2d(3, 5, 3)",
            "2, 3, 8, 9",
            "y + torch.arange(5.0, dtype=torch.float64).view(1, 5, 1, 1)",
        ),
    ),
    ("bias_before_norm", conv("Conv2d(3, 6, 3)", "2, 3, 8, 9", "F.instance_norm(y)")),
    ("bias_before_norm", conv("Conv2d(3, 6, 3)", "2, 3, 8, 9", "F.group_norm(y, 6)")),
    (
        "bias_before_norm",
        conv("Conv2d(3, 6, 3)", "2, 3, 8, 9", "F.batch_norm(y, None, None, training=True)"),
    ),
]


@pytest.mark.parametrize(("name", "case"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_a_rule_fires_and_keeps_the_value(fire, name, case):
    fired, error = fire(name, **case)
    assert fired
    assert error < 1e-12


NOT = [
    ("conv_avg_pool", conv("Conv2d(3, 5, 3)", "2, 3, 14, 13", "F.avg_pool2d(torch.relu(y), 4)")),
    ("conv_avg_pool", conv("Conv2d(3, 5, 3)", "2, 3, 14, 13", "F.avg_pool2d(y, 4, padding=1)")),
    (
        "conv_avg_pool",
        conv("Conv2d(3, 5, 3)", "2, 3, 14, 13", "F.avg_pool2d(y, 5, ceil_mode=True)"),
    ),
    ("conv_avg_pool", conv("Conv2d(3, 5, 3, dilation=2)", "2, 3, 14, 13", "F.avg_pool2d(y, 4)")),
    ("conv_avg_pool", conv("Conv2d(3, 5, 3)", "2, 3, 14, 13", "F.max_pool2d(y, 4)")),
    (
        "conv_avg_pool",
        conv("Conv2d(3, 5, 3)", "2, 3, 14, 13", "F.avg_pool2d(y, 4, divisor_override=3)"),
    ),
    (
        "conv_transpose_avg_pool",
        conv("ConvTranspose2d(3, 4, 3, stride=3)", "2, 3, 5, 6", "F.avg_pool2d(y, 2)"),
    ),
    (
        "pool_before_pointwise",
        conv("Conv2d(3, 5, 1)", "2, 3, 8, 9", "F.avg_pool2d(y, 2, padding=1)"),
    ),
    (
        "pool_before_pointwise",
        conv("Conv2d(3, 5, 1, stride=2)", "2, 3, 8, 9", "F.avg_pool2d(y, 2)"),
    ),
    ("conv_reduce", conv("Conv2d(3, 5, 3)", "2, 3, 8, 9", "y.mean(1)")),
    ("conv_reduce", conv("Conv2d(3, 5, 3)", "2, 3, 8, 9", "y.amax((2, 3))")),
    ("conv_reduce", conv("Conv2d(3, 5, 3)", "3, 8, 9", "y.mean((1, 2))")),
    ("conv_reduce", conv("ConvTranspose1d(4, 6, 7, padding=3)", "2, 4, 3", "y.mean(-1)")),
    ("fold_scale", conv("Conv2d(3, 5, 3)", "2, 3, 8, 9", "y * x[:, :1, :6, :7]")),
    ("bias_before_norm", conv("Conv2d(3, 6, 3)", "2, 3, 8, 9", "F.group_norm(y, 3)")),
]


@pytest.mark.parametrize(("name", "case"), NOT, ids=lambda v: v if isinstance(v, str) else "")
def test_a_rule_leaves_alone_what_it_must_not_touch(fire, name, case):
    fired, error = fire(name, **case)
    assert fired == 0
    assert error == 0.0


def test_a_batch_norm_with_fixed_statistics_folds_into_the_convolution(fire):
    case = {
        "init": "self.c = nn.Conv2d(3, 5, 3)\nself.n = nn.BatchNorm2d(5)",
        "inputs": ("torch.randn(2, 3, 8, 9)",),
    }
    fired, error = fire("fold_batch_norm", "return self.n(self.c(x))", mode="eval", **case)
    assert fired
    assert error < 1e-12


@pytest.mark.parametrize("name", ["fold_batch_norm", "bias_before_norm"])
def test_a_training_batch_norm_with_running_statistics_is_left_alone(fire, name):
    case = {
        "init": "self.c = nn.Conv2d(3, 5, 3)\nself.n = nn.BatchNorm2d(5)",
        "inputs": ("torch.randn(2, 3, 8, 9)",),
    }
    fired, _ = fire(name, "return self.n(self.c(x))", mode="train", **case)
    assert fired == 0
