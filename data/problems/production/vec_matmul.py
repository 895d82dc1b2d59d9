"""One vector times a matrix, as a projection does for a single token of decoding.

Of KernelPro's App. C.3. The weight is read once: a memory-bound reduction over its rows.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

FAMILY = "matmul"

IN_FEATURES = 8192
OUT_FEATURES = 28672
SMALL = {"IN_FEATURES": 72, "OUT_FEATURES": 50}


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
def vector_kernel(
    weight_ptr, x_ptr, out_ptr, rows, width, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
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


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features, dtype=torch.bfloat16))

    def forward(self, x):
        rows, width = self.weight.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        block_n, block_k = 16, 512
        grid = (triton.cdiv(rows, block_n),)
        vector_kernel[grid](
            self.weight, x, out, rows, width, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=4
        )
        return out
