"""Two linear layers with a GELU between."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.up = nn.Linear(features, 2 * features)
        self.down = nn.Linear(2 * features, features)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


def get_inputs():
    return [torch.randn(128, 128)]


def get_init_inputs():
    return [128]
