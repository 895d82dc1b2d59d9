"""Mish of one branch, a clamped other branch, blended by a sigmoid gate.

Family: element-wise. Three inputs and a chain of transcendental functions, compute-bound on a CPU.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

FAMILY = "elementwise"

ROWS = 2048
WIDTH = 1024


class Model(nn.Module):
    def __init__(self, low, high):
        super().__init__()
        self.low = low
        self.high = high

    def forward(self, x, y, gate):
        share = torch.sigmoid(gate)
        return share * F.mish(x) + (1.0 - share) * torch.clamp(y, self.low, self.high)


def get_inputs():
    return [
        2.0 * torch.randn(ROWS, WIDTH),
        3.0 * torch.randn(ROWS, WIDTH),
        torch.randn(ROWS, WIDTH),
    ]


def get_init_inputs():
    return [-2.5, 1.5]
