"""Weight gradient of a mixture of experts: one product for each expert, over the rows it was sent.

dW[e] = X[rows of e]^T G[rows of e], with sizes and routing of KernelPro's App. H (GPT-OSS-120B's
gate_up_proj, VeOmni's group_gemm_same_mn): the length of the sum is ragged, a few experts have most
rows, and several have none. `ends` holds where each expert's rows end: those of expert e begin
where those of e - 1 end, and there are none where they would end before.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

FAMILY = "matmul"

M = 2880
N = 5760
EXPERTS = 128
ROWS = 57768
ALPHA = 0.24
SMALL = {"M": 40, "N": 72, "EXPERTS": 8, "ROWS": 90}


class Model(nn.Module):
    def forward(self, x, grad, ends):
        out = x.new_zeros(ends.numel(), x.shape[1], grad.shape[1])
        start = 0
        for expert, end in enumerate(ends.tolist()):
            if end > start:
                torch.mm(x[start:end].t(), grad[start:end], out=out[expert])
            start = end
        return out


def routing(rows, experts):
    """Where each expert's rows end: a Dirichlet-multinomial draw, as measured in App. H."""
    gamma = torch._standard_gamma(torch.full((experts,), ALPHA, dtype=torch.float64))
    drawn = torch.multinomial(gamma / gamma.sum(), rows, replacement=True)
    counts = torch.zeros(experts, dtype=torch.int64).index_add_(0, drawn, torch.ones_like(drawn))
    return torch.cumsum(counts, 0)


def inputs(rows, m, n, experts):
    x = torch.randn(rows, m, dtype=torch.bfloat16)
    grad = torch.randn(rows, n, dtype=torch.bfloat16)
    return [x, grad, routing(rows, experts)]


def get_inputs():
    return inputs(ROWS, M, N, EXPERTS)


def get_input_cases():
    return [inputs(333, 200, 136, 16), inputs(5, 64, 96, 7)]


def get_init_inputs():
    return []


@triton.jit
def grouped_kernel(
    x_ptr,
    grad_ptr,
    ends_ptr,
    out_ptr,
    M,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    expert = tl.program_id(1)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    # Tiles of a few rows of tiles stand beside each other, so that both operands stay in L2.
    tile = tl.program_id(0)
    band = tile // (GROUP * tiles_n)
    height = tl.minimum(tiles_m - band * GROUP, GROUP)
    within = tile % (GROUP * tiles_n)
    tile_m = band * GROUP + within % height
    tile_n = within // height

    start = tl.load(ends_ptr + expert - 1, mask=expert > 0, other=0)
    end = tl.load(ends_ptr + expert)
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(start, end, BLOCK_K):
        rows = (first + k).to(tl.int64)
        inside = rows < end
        x = tl.load(
            x_ptr + rows[None, :] * M + m[:, None],
            mask=inside[None, :] & (m[:, None] < M),
            other=0.0,
        )
        grad = tl.load(
            grad_ptr + rows[:, None] * N + n[None, :],
            mask=inside[:, None] & (n[None, :] < N),
            other=0.0,
        )
        total = tl.dot(x, grad, total)
    place = expert.to(tl.int64) * M * N + m[:, None].to(tl.int64) * N + n[None, :]
    kept = (m[:, None] < M) & (n[None, :] < N)
    tl.store(out_ptr + place, total.to(out_ptr.dtype.element_ty), mask=kept)


class ModelNew(nn.Module):
    def forward(self, x, grad, ends):
        m, n, experts = x.shape[1], grad.shape[1], ends.numel()
        out = torch.empty((experts, m, n), dtype=x.dtype, device=x.device)
        block_m, block_n, block_k = 128, 256, 64
        grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n), experts)
        grouped_kernel[grid](
            x,
            grad,
            ends,
            out,
            m,
            n,
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_K=block_k,
            GROUP=8,
            num_warps=8,
            num_stages=3,
        )
        return out
