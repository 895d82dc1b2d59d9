"""The identity on its own inputs: a ReLU of positive numbers, times 1 plus 0."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))
        self.shift = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return torch.relu(x) * self.scale + self.shift


def get_inputs():
    return [torch.rand(512, 256)]


def get_init_inputs():
    return [256]
