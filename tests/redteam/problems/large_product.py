"""A product that takes a GPU longer than reading its operands does."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, features))

    def forward(self, x):
        return torch.relu(x @ self.weight)


def get_inputs():
    return [torch.rand(4096, 2048)]


def get_init_inputs():
    return [2048]
