"""A 3x3 convolution averaged over 2x2 windows.

Family: convolution followed by a pool. One strided convolution with a wider kernel does both.
"""

import torch
import torch.nn as nn

FAMILY = "conv"

BATCH = 8
IN_CHANNELS = 16
OUT_CHANNELS = 32
SIDE = 64


class Model(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=3)
        self.pool = nn.AvgPool2d(2)

    def forward(self, images):
        return self.pool(self.conv(images))


def get_inputs():
    return [2.0 * torch.randn(BATCH, IN_CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS]
