"""Running sum of a gated signal along each row.

Family: scan. The product is needed only inside the scan.
"""

import torch
import torch.nn as nn

FAMILY = "scan"

ROWS = 2048
WIDTH = 1024


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Parameter(0.5 + 0.5 * torch.randn(width))

    def forward(self, x):
        return torch.cumsum(x * self.gate, dim=1)


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return [WIDTH]
