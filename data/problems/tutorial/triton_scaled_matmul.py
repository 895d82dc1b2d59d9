"""Activations times int8 weights with a scale for each block of the sum, in Triton.

Weights are read as they are stored and scaled in registers, so that half the bytes move.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

FAMILY = "matmul"

ROWS = 128
DEPTH = 8192
COLUMNS = 8192
BLOCK = 64
SMALL = {"ROWS": 20, "DEPTH": 128, "COLUMNS": 70}


class Model(nn.Module):
    def forward(self, x, weight, scales):
        scaled = weight.to(scales.dtype) * scales.repeat_interleave(BLOCK, dim=1)
        return torch.nn.functional.linear(x, scaled.to(x.dtype))


def inputs(rows, depth, columns):
    return [
        torch.randn(rows, depth, dtype=torch.float16),
        torch.randint(-127, 128, (columns, depth), dtype=torch.int8),
        torch.rand(columns, depth // BLOCK, dtype=torch.float16) * 0.0004 + 0.0002,
    ]


def get_inputs():
    return inputs(ROWS, DEPTH, COLUMNS)


def get_input_cases():
    return [inputs(3, 2 * BLOCK, 129)]


def get_init_inputs():
    return []


@triton.jit
def scaled_kernel(
    x_ptr,
    weight_ptr,
    scales_ptr,
    out_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside_n = n < N
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for block in range(0, K // BLOCK_K):
        k = block * BLOCK_K + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=m[:, None] < M, other=0.0)
        weight = tl.load(weight_ptr + n[None, :] * K + k[:, None], mask=inside_n[None, :], other=0)
        scale = tl.load(scales_ptr + n * (K // BLOCK_K) + block, mask=inside_n, other=0.0)
        total += tl.dot(x, weight.to(x.dtype)) * scale.to(tl.float32)[None, :]
    tl.store(
        out_ptr + m[:, None] * N + n[None, :],
        total.to(out_ptr.dtype.element_ty),
        mask=(m[:, None] < M) & inside_n[None, :],
    )


class ModelNew(nn.Module):
    def forward(self, x, weight, scales):
        (m, k), n = x.shape, weight.shape[0]
        out = torch.empty((m, n), dtype=x.dtype, device=x.device)
        block_m, block_n = 64, 64
        scaled_kernel[(triton.cdiv(n, block_n), triton.cdiv(m, block_m))](
            x,
            weight,
            scales,
            out,
            m,
            n,
            k,
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_K=BLOCK,
            num_warps=4,
            num_stages=4,
        )
        return out
