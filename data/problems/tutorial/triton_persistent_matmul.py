"""A product by programs that stay, in Triton: each takes one tile after another."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

FAMILY = "matmul"

ROWS = 8192
COLUMNS = 8192
DEPTH = 1024
SMALL = {"ROWS": 150, "COLUMNS": 300, "DEPTH": 50}


class Model(nn.Module):
    def forward(self, a, b):
        return torch.nn.functional.linear(a, b)


def inputs(rows, depth, columns):
    return [
        torch.randn(rows, depth, dtype=torch.bfloat16),
        torch.randn(columns, depth, dtype=torch.bfloat16) * depth**-0.5,
    ]


def get_inputs():
    return inputs(ROWS, DEPTH, COLUMNS)


def get_input_cases():
    return [inputs(33, 70, 130)]


def get_init_inputs():
    return []


@triton.jit
def persistent_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * tiles_n
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        m = (tile // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
        n = (tile % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for first in range(0, K, BLOCK_K):
            k = first + tl.arange(0, BLOCK_K)
            a = tl.load(
                a_ptr + m[:, None] * K + k[None, :],
                mask=(m[:, None] < M) & (k[None, :] < K),
                other=0.0,
            )
            b = tl.load(
                b_ptr + n[None, :] * K + k[:, None],
                mask=(n[None, :] < N) & (k[:, None] < K),
                other=0.0,
            )
            total = tl.dot(a, b, total)
        tl.store(
            out_ptr + m[:, None] * N + n[None, :],
            total.to(out_ptr.dtype.element_ty),
            mask=(m[:, None] < M) & (n[None, :] < N),
        )


class ModelNew(nn.Module):
    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[0]
        out = torch.empty((m, n), dtype=a.dtype, device=a.device)
        block_m, block_n = 128, 256
        tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
        persistent_kernel[(min(tiles, 132),)](
            a,
            b,
            out,
            m,
            n,
            k,
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_K=64,
            num_warps=8,
            num_stages=3,
        )
        return out
