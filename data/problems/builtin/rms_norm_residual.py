"""The residual added, then RMS norm with a learnt weight: the start of a transformer block.

Family: norm. Two inputs, one row reduction.
"""

import torch
import torch.nn as nn

FAMILY = "norm"

TOKENS = 4096
WIDTH = 1024
EPS = 1e-6


class Model(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.3 * torch.randn(width))
        self.eps = eps

    def forward(self, x, residual):
        hidden = x + residual
        mean_square = hidden.pow(2).mean(dim=-1, keepdim=True)
        return hidden * torch.rsqrt(mean_square + self.eps) * self.weight


def get_inputs():
    return [torch.randn(TOKENS, WIDTH), 2.0 * torch.randn(TOKENS, WIDTH)]


def get_init_inputs():
    return [WIDTH, EPS]
