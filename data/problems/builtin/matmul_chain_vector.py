"""The product of two matrices, applied to a few vectors.

Family: matmul. Multiplied from the right, the square product is never formed.
"""

import torch
import torch.nn as nn

FAMILY = "matmul"

ROWS = 768
INNER = 512
WIDTH = 768
VECTORS = 4


class Model(nn.Module):
    def __init__(self, width, vectors):
        super().__init__()
        self.directions = nn.Parameter(torch.randn(width, vectors) / width**0.5)

    def forward(self, left, right):
        return torch.matmul(torch.matmul(left, right), self.directions)


def get_inputs():
    return [torch.randn(ROWS, INNER), torch.randn(INNER, WIDTH) / INNER**0.5]


def get_init_inputs():
    return [WIDTH, VECTORS]
