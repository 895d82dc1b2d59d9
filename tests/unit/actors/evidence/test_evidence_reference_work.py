"""The work of a reference, by hand: FLOPs of products and of the rest, bytes moved."""

from __future__ import annotations

import pytest

from kopt.actors.evidence.order import Order
from kopt.actors.evidence.reference_work import reference_work
from kopt.actors.evidence.references import work_from_json

HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n\n\n"


def work(tmp_path, body, *, inputs, matmul_tf32=False, cudnn_tf32=True, dtype=None) -> dict:
    source = f"{HEAD}class Model(nn.Module):\n{body}\n\ndef get_inputs():\n    return [{inputs}]\n"
    order = Order(
        look="work",
        reference=source,
        candidate=None,
        dtype=dtype,
        module_mode="train",
        matmul_tf32=matmul_tf32,
        cudnn_tf32=cudnn_tf32,
        num_threads=1,
    )
    return reference_work(order, folder=tmp_path)


def forward(expression) -> str:
    return f"    def forward(self, x, y=None):\n        return {expression}\n"


def test_an_elementwise_call_reads_and_writes_once(tmp_path) -> None:
    found = work(tmp_path, forward("x + 1.0"), inputs="torch.rand(100)")
    assert found == {
        "matrix_flops": {},
        "vector_flops": 100.0,
        "bytes": 800.0,
        "unfused_bytes": 800.0,
    }


def test_operations_on_their_own_move_more_than_the_call_must(tmp_path) -> None:
    found = work(tmp_path, forward("torch.relu(x + 1.0) * 2.0"), inputs="torch.rand(100)")
    assert (found["bytes"], found["unfused_bytes"]) == (800.0, 2400.0)
    assert found["vector_flops"] == 300.0


def test_views_move_nothing(tmp_path) -> None:
    found = work(tmp_path, forward("x.t().reshape(-1)[:10] + 0.0"), inputs="torch.rand(5, 1)")
    assert found["unfused_bytes"] == 40.0


def test_a_product_counts_two_flops_for_each_multiply_add(tmp_path) -> None:
    inputs = "torch.rand(16, 32), torch.rand(32, 8)"
    found = work(tmp_path, forward("x @ y"), inputs=inputs)
    assert found["matrix_flops"] == {"fp32": 2.0 * 16 * 32 * 8}
    assert found["bytes"] == 4.0 * (16 * 32 + 32 * 8 + 16 * 8)


@pytest.mark.parametrize(
    ("expression", "flags", "precision"),
    [
        ("x @ x", {"matmul_tf32": True}, "tf32"),
        ("x @ x", {"matmul_tf32": False}, "fp32"),
        ("x @ x", {"dtype": "bfloat16"}, "bf16"),
        ("x @ x", {"dtype": "float64"}, "fp64"),
        ("F.conv2d(x[None, None], x[None, None])", {"cudnn_tf32": True}, "tf32"),
        ("F.conv2d(x[None, None], x[None, None])", {"cudnn_tf32": False}, "fp32"),
    ],
)
def test_the_policy_says_which_precision_a_product_runs_in(
    tmp_path, expression, flags, precision
) -> None:
    found = work(tmp_path, forward(expression), inputs="torch.rand(8, 8)", **flags)
    assert list(found["matrix_flops"]) == [precision]


def test_attention_on_a_host_is_counted(tmp_path) -> None:
    expression = "F.scaled_dot_product_attention(x, x, x)"
    found = work(tmp_path, forward(expression), inputs="torch.rand(1, 2, 16, 4)")
    assert found["matrix_flops"] == {"fp32": 2 * 2 * 2.0 * 16 * 16 * 4}


def test_a_recurrent_layer_is_the_products_of_its_steps(tmp_path) -> None:
    body = (
        "    def __init__(self):\n        super().__init__()\n        self.r = nn.LSTM(6, 5)\n\n"
        "    def forward(self, x):\n        return self.r(x)[0]\n"
    )
    found = work(tmp_path, body, inputs="torch.rand(7, 3, 6)")
    assert found["matrix_flops"] == {"fp32": 7 * 3 * 8.0 * 5 * (6 + 5)}


def test_a_parameter_that_nobody_reads_is_no_traffic(tmp_path) -> None:
    body = (
        "    def __init__(self):\n        super().__init__()\n"
        "        self.used = nn.Parameter(torch.ones(10))\n"
        "        self.dead = nn.Parameter(torch.ones(1000))\n\n"
        "    def forward(self, x):\n        return x * self.used\n"
    )
    assert work(tmp_path, body, inputs="torch.rand(10)")["bytes"] == 120.0


def test_of_a_table_only_the_rows_are_read(tmp_path) -> None:
    body = (
        "    def __init__(self):\n        super().__init__()\n"
        "        self.table = nn.Embedding(1000, 4)\n\n"
        "    def forward(self, x):\n        return self.table(x)\n"
    )
    found = work(tmp_path, body, inputs="torch.arange(3)")
    assert found["bytes"] == 3 * 8 + 2 * 3 * 4 * 4


def test_huge_inputs_cost_no_memory(tmp_path) -> None:
    found = work(tmp_path, forward("x.sum()"), inputs="torch.rand(1 << 36)")
    assert found["bytes"] == 4.0 * (1 << 36) + 4


def test_a_reference_that_looks_at_its_content_cannot_be_counted(tmp_path) -> None:
    with pytest.raises(Exception, match="scalar"):
        work(tmp_path, forward("x * float(x.max())"), inputs="torch.rand(4)")


def test_a_host_has_no_pipes_of_lower_precision() -> None:
    record = {
        "matrix_flops": {"tf32": 1.0, "fp32": 2.0, "fp64": 4.0},
        "vector_flops": 0,
        "bytes": 8,
        "unfused_bytes": 8,
    }
    work = work_from_json(record, is_host=True)
    assert dict(work.matrix_flops) == {"fp32": 3.0, "fp64": 4.0}


@pytest.mark.parametrize("precision", ["int8", ""])
def test_a_report_of_other_precisions_is_refused(precision) -> None:
    record = {
        "matrix_flops": {precision: 1.0},
        "vector_flops": 0,
        "bytes": 8,
        "unfused_bytes": 8,
    }
    with pytest.raises(ValueError, match="precision"):
        work_from_json(record, is_host=False)
