"""A product with few rows and a long sum, split over the sum and added up by atomics.

Of KernelPro's App. C.3: a projection while a small batch decodes. Tiles of the output alone would
leave most of the device idle; each is shared by several programs, which add their parts in float32.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

FAMILY = "matmul"

ROWS = 64
DEPTH = 28672
COLUMNS = 8192
SMALL = {"ROWS": 20, "DEPTH": 150, "COLUMNS": 50}


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def inputs(rows, depth, columns):
    a = torch.randn(rows, depth, dtype=torch.bfloat16)
    return [a, torch.randn(depth, columns, dtype=torch.bfloat16) * depth**-0.5]


def get_inputs():
    return inputs(ROWS, DEPTH, COLUMNS)


def get_input_cases():
    return [inputs(17, 333, 65), inputs(1, 40, 200)]


def get_init_inputs():
    return []


@triton.jit
def split_kernel(
    a_ptr,
    b_ptr,
    sums_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLIT: tl.constexpr,
):
    tile = tl.program_id(0)
    part = tl.program_id(1)
    tiles_n = tl.cdiv(N, BLOCK_N)
    m = (tile // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (tile % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(part * BLOCK_K, K, BLOCK_K * SPLIT):
        k = first + tl.arange(0, BLOCK_K)
        a = tl.load(
            a_ptr + m[:, None].to(tl.int64) * K + k[None, :],
            mask=(m[:, None] < M) & (k[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_ptr + k[:, None].to(tl.int64) * N + n[None, :],
            mask=(k[:, None] < K) & (n[None, :] < N),
            other=0.0,
        )
        total = tl.dot(a, b, total)
    place = sums_ptr + m[:, None] * N + n[None, :]
    tl.atomic_add(place, total, mask=(m[:, None] < M) & (n[None, :] < N), sem="relaxed")


class ModelNew(nn.Module):
    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[1]
        sums = torch.zeros((m, n), dtype=torch.float32, device=a.device)
        block_m, block_n, block_k, split = 64, 128, 64, 8
        grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n), split)
        split_kernel[grid](
            a,
            b,
            sums,
            m,
            n,
            k,
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_K=block_k,
            SPLIT=split,
            num_warps=4,
            num_stages=4,
        )
        return sums.to(a.dtype)
