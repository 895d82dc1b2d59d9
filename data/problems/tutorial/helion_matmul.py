"""A product with a bias and a ReLU in its epilogue, in Helion."""

import helion
import helion.language as hl
import torch
import torch.nn as nn

FAMILY = "linear"

ROWS = 4096
IN_FEATURES = 4096
OUT_FEATURES = 4096
SMALL = {"ROWS": 40, "IN_FEATURES": 50, "OUT_FEATURES": 72}


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, dtype=torch.float16)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(ROWS, IN_FEATURES, dtype=torch.float16)]


def get_input_cases():
    return [[torch.randn(33, IN_FEATURES, dtype=torch.float16)]]


def get_init_inputs():
    return [IN_FEATURES, OUT_FEATURES]


@helion.kernel(
    config=helion.Config(block_sizes=[128, 256, 64], l2_groupings=[8], num_warps=8, num_stages=3)
)
def linear_relu(x, weight, bias):
    m, k = x.size()
    n = weight.size(0)
    out = torch.empty([m, n], dtype=x.dtype, device=x.device)
    for rows, columns in hl.tile([m, n]):
        total = hl.zeros([rows, columns], dtype=torch.float32)
        for depth in hl.tile(k):
            total = torch.addmm(total, x[rows, depth], weight[columns, depth].T)
        out[rows, columns] = torch.relu(total + bias[columns].to(torch.float32)).to(out.dtype)
    return out


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, dtype=torch.float16)

    def forward(self, x):
        return linear_relu(x, self.linear.weight, self.linear.bias)
