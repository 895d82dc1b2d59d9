"""Log-softmax over the channels of an image, as a segmentation head ends.

Family: reduction over a strided dimension.
"""

import torch
import torch.nn as nn

FAMILY = "softmax"

BATCH = 16
CHANNELS = 32
SIDE = 64


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(channels, 1, 1))

    def forward(self, logits):
        return torch.log_softmax(logits + self.bias, dim=1)


def get_inputs():
    return [3.0 * torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS]
