"""A linear layer with SiLU and a learnt scale for each output.

Family: linear with an element-wise epilogue.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

FAMILY = "linear"

ROWS = 1024
IN_FEATURES = 256
OUT_FEATURES = 1024


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(1.0 + 0.3 * torch.randn(out_features))

    def forward(self, x):
        return F.silu(self.linear(x)) * self.scale


def get_inputs():
    return [2.0 * torch.randn(ROWS, IN_FEATURES)]


def get_init_inputs():
    return [IN_FEATURES, OUT_FEATURES]
