"""A learnt scale for each channel, GELU, and the residual added back.

Family: element-wise. Eager torch walks the tensor once for each of its four operations.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

FAMILY = "elementwise"

ROWS = 4096
WIDTH = 1024


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(1.0 + 0.3 * torch.randn(width))
        self.shift = nn.Parameter(0.2 * torch.randn(width))

    def forward(self, x, residual):
        return F.gelu(x * self.scale + self.shift) + residual


def get_inputs():
    return [2.0 * torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return [WIDTH]
