"""A linear layer whose outputs are summed for each sample, then squashed.

Family: linear followed by a reduction. The sum can go through the product: the matrix product
becomes a matrix-vector product.
"""

import torch
import torch.nn as nn

FAMILY = "linear"

ROWS = 1024
IN_FEATURES = 512
OUT_FEATURES = 1024


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        nn.init.normal_(self.linear.bias, std=0.1)

    def forward(self, x):
        total = self.linear(x).sum(dim=1, keepdim=True)
        return 10.0 * torch.tanh(total / 40.0)


def get_inputs():
    return [torch.randn(ROWS, IN_FEATURES)]


def get_init_inputs():
    return [IN_FEATURES, OUT_FEATURES]
