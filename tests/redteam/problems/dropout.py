"""Dropout in training mode: right is who draws the mask that the seed gives."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x) * 2


def get_inputs():
    return [torch.randn(256, 512)]
