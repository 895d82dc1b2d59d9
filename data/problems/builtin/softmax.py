"""Softmax of each row, at a temperature learnt for each row's head.

Family: row reduction. Rows of 512 keep every output far above the tolerances.
"""

import torch
import torch.nn as nn

FAMILY = "softmax"

BATCH = 1024
HEADS = 8
WIDTH = 512


class Model(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.temperature = nn.Parameter(0.5 + torch.rand(heads, 1))

    def forward(self, scores):
        return torch.softmax(scores / self.temperature, dim=-1)


def get_inputs():
    return [2.0 * torch.randn(BATCH, HEADS, WIDTH)]


def get_init_inputs():
    return [HEADS]
