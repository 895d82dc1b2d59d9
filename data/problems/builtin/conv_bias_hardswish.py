"""A convolution, a second bias, hard-swish and a residual: the body of a mobile network's block.

Family: convolution with an element-wise epilogue.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

FAMILY = "conv"

BATCH = 8
CHANNELS = 32
SIDE = 56


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size=3, padding=1)
        self.bias = nn.Parameter(0.5 * torch.randn(channels, 1, 1))

    def forward(self, images):
        return images + F.hardswish(self.conv(images) + self.bias)


def get_inputs():
    return [2.0 * torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS]
