"""Layer norm over the last dimension, with an affine part that is not 1 and 0.

Family: norm. The input's mean is far from 0, so that variances must be computed with care.
"""

import torch
import torch.nn as nn

FAMILY = "norm"

BATCH = 64
TOKENS = 128
WIDTH = 768


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [1.5 + 2.0 * torch.randn(BATCH, TOKENS, WIDTH)]


def get_init_inputs():
    return [WIDTH]
