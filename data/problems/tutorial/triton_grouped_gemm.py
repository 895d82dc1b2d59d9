"""Several products of different heights in one launch, in Triton.

Rows of all groups lie under each other; a program finds its group among the ends of the groups.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

FAMILY = "matmul"

GROUPS = 16
ROWS = 16384
DEPTH = 2048
COLUMNS = 4096
SMALL = {"GROUPS": 4, "ROWS": 90, "DEPTH": 40, "COLUMNS": 70}


class Model(nn.Module):
    def forward(self, x, weight, ends):
        out = x.new_zeros(x.shape[0], weight.shape[2])
        start = 0
        for group, end in enumerate(ends.tolist()):
            if end > start:
                torch.mm(x[start:end], weight[group], out=out[start:end])
                start = end
        return out


def inputs(groups, rows, depth, columns):
    ends = torch.sort(torch.randint(0, rows + 1, (groups,))).values
    ends[-1] = rows
    return [
        torch.randn(rows, depth, dtype=torch.float16),
        torch.randn(groups, depth, columns, dtype=torch.float16) * depth**-0.5,
        ends,
    ]


def get_inputs():
    return inputs(GROUPS, ROWS, DEPTH, COLUMNS)


def get_input_cases():
    return [inputs(3, 200, 65, 129)]


def get_init_inputs():
    return []


@triton.jit
def grouped_kernel(
    x_ptr,
    weight_ptr,
    starts_ptr,
    ends_ptr,
    out_ptr,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    group = tl.program_id(2)
    end = tl.load(ends_ptr + group)
    first = tl.load(starts_ptr + group) + tl.program_id(1) * BLOCK_M
    if first < end:
        m = first + tl.arange(0, BLOCK_M)
        n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
        weight_ptr += group.to(tl.int64) * K * N
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for begin in range(0, K, BLOCK_K):
            k = begin + tl.arange(0, BLOCK_K)
            x = tl.load(
                x_ptr + m[:, None] * K + k[None, :],
                mask=(m[:, None] < end) & (k[None, :] < K),
                other=0.0,
            )
            weight = tl.load(
                weight_ptr + k[:, None] * N + n[None, :],
                mask=(k[:, None] < K) & (n[None, :] < N),
                other=0.0,
            )
            total = tl.dot(x, weight, total)
        tl.store(
            out_ptr + m[:, None] * N + n[None, :],
            total.to(out_ptr.dtype.element_ty),
            mask=(m[:, None] < end) & (n[None, :] < N),
        )


class ModelNew(nn.Module):
    def forward(self, x, weight, ends):
        rows, k = x.shape
        groups, _, n = weight.shape
        out = torch.zeros((rows, n), dtype=x.dtype, device=x.device)
        # A group begins where the furthest of those before it ends.
        starts = torch.nn.functional.pad(torch.cummax(ends, 0).values[:-1], (1, 0))
        block_m, block_n = 128, 256
        grid = (triton.cdiv(n, block_n), triton.cdiv(rows, block_m), groups)
        grouped_kernel[grid](
            x,
            weight,
            starts,
            ends,
            out,
            n,
            k,
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_K=64,
            num_warps=8,
            num_stages=3,
        )
        return out
