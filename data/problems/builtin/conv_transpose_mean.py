"""A transposed convolution, scaled, then averaged over the whole image.

Family: convolution followed by a reduction. The mean needs sums of windows of the input only.
"""

import torch
import torch.nn as nn

FAMILY = "conv"

BATCH = 16
IN_CHANNELS = 16
OUT_CHANNELS = 32
SIDE = 32


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, scale):
        super().__init__()
        self.conv = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size=3, stride=2, padding=1, output_padding=1
        )
        nn.init.normal_(self.conv.bias, std=0.5)
        self.scale = scale

    def forward(self, images):
        return (self.scale * self.conv(images)).mean(dim=(2, 3))


def get_inputs():
    means = 3.0 * torch.randn(BATCH, IN_CHANNELS, 1, 1)
    return [means + torch.randn(BATCH, IN_CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, 2.0]
