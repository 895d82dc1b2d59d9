"""One vector times a vocabulary's matrix, by blocks that stay: each takes tile after tile.

Of KernelPro's App. C.3: as many programs as fill the device, each looping over the tiles of rows
that are its, so that none is launched for a tile alone.
"""

import functools

import torch
import torch.nn as nn
import triton
import triton.language as tl

FAMILY = "matmul"

IN_FEATURES = 4096
OUT_FEATURES = 128256
SMALL = {"IN_FEATURES": 72, "OUT_FEATURES": 150}


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        weight = torch.randn(out_features, in_features, dtype=torch.bfloat16)
        self.weight = nn.Parameter(weight * in_features**-0.5)

    def forward(self, x):
        return torch.mv(self.weight, x)


def get_inputs():
    return [torch.randn(IN_FEATURES, dtype=torch.bfloat16)]


def get_init_inputs():
    return [IN_FEATURES, OUT_FEATURES]


@triton.jit
def persistent_kernel(
    weight_ptr,
    x_ptr,
    out_ptr,
    rows,
    width,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    for tile in range(tl.program_id(0), tl.cdiv(rows, BLOCK_N), tl.num_programs(0)):
        n = tile * BLOCK_N + tl.arange(0, BLOCK_N)
        total = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
        for first in range(0, width, BLOCK_K):
            k = first + tl.arange(0, BLOCK_K)
            x = tl.load(x_ptr + k, mask=k < width, other=0.0).to(tl.float32)
            weight = tl.load(
                weight_ptr + n[:, None].to(tl.int64) * width + k[None, :],
                mask=(n[:, None] < rows) & (k[None, :] < width),
                other=0.0,
            ).to(tl.float32)
            total += weight * x[None, :]
        y = tl.sum(total, axis=1)
        tl.store(out_ptr + n, y.to(out_ptr.dtype.element_ty), mask=n < rows)


@functools.cache
def num_processors(device):
    """Of a GPU; a few anywhere else."""
    return (
        torch.cuda.get_device_properties(device).multi_processor_count
        if device.index is not None
        else 3
    )


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features, dtype=torch.bfloat16))

    def forward(self, x):
        rows, width = self.weight.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        block_n, block_k = 16, 512
        grid = (min(4 * num_processors(x.device), triton.cdiv(rows, block_n)),)
        persistent_kernel[grid](
            self.weight, x, out, rows, width, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=4
        )
        return out
