"""A 2-D convolution without padding, in Helion: a product for each place of its window."""

import helion
import helion.language as hl
import torch
import torch.nn as nn

FAMILY = "conv"

BATCH = 32
CHANNELS = 128
SIZE = 56
OUT_CHANNELS = 256
WINDOW = 3
SMALL = {"BATCH": 1, "CHANNELS": 18, "SIZE": 7, "OUT_CHANNELS": 20}


class Model(nn.Module):
    def __init__(self, channels, out_channels, window):
        super().__init__()
        weight = torch.randn(out_channels, channels, window, window, dtype=torch.float16)
        self.weight = nn.Parameter(weight * (channels * window * window) ** -0.5)

    def forward(self, x):
        return torch.nn.functional.conv2d(x, self.weight)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE, dtype=torch.float16)]


def get_init_inputs():
    return [CHANNELS, OUT_CHANNELS, WINDOW]


@helion.kernel(config=helion.Config(block_sizes=[128, 64, 64], num_warps=4, num_stages=3))
def conv2d(x, weight):
    batch, channels, height, width = x.size()
    out_channels, _, window_y, window_x = weight.size()
    window_y, window_x = hl.specialize(window_y), hl.specialize(window_x)
    out_height, out_width = height - window_y + 1, width - window_x + 1
    out = torch.empty(
        [batch * out_height * out_width, out_channels], dtype=x.dtype, device=x.device
    )
    flat = x.view(-1)
    for places, kernels in hl.tile([batch * out_height * out_width, out_channels]):
        image = places.index // (out_height * out_width)
        top = places.index // out_width % out_height
        left = places.index % out_width
        total = hl.zeros([places, kernels], dtype=torch.float32)
        for y in hl.static_range(window_y):
            for across in hl.static_range(window_x):
                for inner in hl.tile(channels):
                    rows = (image[:, None] * channels + inner.index[None, :]) * height + (top + y)[
                        :, None
                    ]
                    seen = hl.load(flat, [rows * width + (left + across)[:, None]])
                    total = torch.addmm(total, seen, weight[kernels, inner, y, across].T)
        out[places, kernels] = total.to(out.dtype)
    return out.view(batch, out_height, out_width, out_channels).permute(0, 3, 1, 2)


class ModelNew(nn.Module):
    def __init__(self, channels, out_channels, window):
        super().__init__()
        weight = torch.empty(out_channels, channels, window, window, dtype=torch.float16)
        self.weight = nn.Parameter(weight)

    def forward(self, x):
        return conv2d(x, self.weight)
