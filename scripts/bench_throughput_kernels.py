"""The GPU kernels of bench_throughput.py: for each problem and language a body to be filled in.

`$tile` and `$unroll` vary from candidate to candidate; `$gain` is 1 where the candidate is to be
right; `$at` is 0 unless it is to write out of bounds; `$break` is empty unless it is not to
compile. Every launch is `run(...)`, so that a candidate's `forward` is one line.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One problem's kernel in one language."""

    source: str
    """What `run` needs, and `run` itself: Python with Triton, or C++ or CUDA text."""
    arguments: str
    """Of `run`, in Python, within `forward(self, x)`."""
    declares: str = ""
    """Types of `run`'s arguments, for the C++ side."""
    tiles: tuple[int, ...] = (128, 256, 512, 1024)
    unrolls: tuple[int, ...] = (1, 2, 4, 8)


ROW_ARGUMENTS = "x"
NORM_ARGUMENTS = "x, self.weight"
LINEAR_ARGUMENTS = "x, self.linear.weight, self.linear.bias"
POOL_ARGUMENTS = "x, self.scale"

TRITON: dict[str, Kernel] = {
    "row_sum": Kernel(
        arguments=ROW_ARGUMENTS,
        tiles=(256, 512, 1024, 2048),
        source="""
@triton.jit
def kernel(x, out, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((TILE,), dtype=tl.float32)
    for start in range(0, columns, TILE):
        at = start + tl.arange(0, TILE)
        inside = at < columns
        value = tl.load(x + row * columns + at, mask=inside, other=0.0)
        value = tl.maximum(value, 0.0) * (1.5 * $gain) + 0.25
        total += tl.where(inside, value, 0.0)
    $break
    tl.store(out + row + $at, tl.sum(total, axis=0))


def run(x):
    x = x.contiguous()
    out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
    kernel[(x.shape[0],)](x, out, x.shape[1], TILE=$tile, num_warps=$unroll)
    return out
""",
    ),
    "rms_norm": Kernel(
        arguments=NORM_ARGUMENTS,
        tiles=(256, 512, 1024, 2048),
        source="""
@triton.jit
def kernel(x, weight, out, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((TILE,), dtype=tl.float32)
    for start in range(0, columns, TILE):
        at = start + tl.arange(0, TILE)
        value = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
        total += value * value
    scale = $gain / tl.sqrt(tl.sum(total, axis=0) / columns + 1e-5)
    $break
    for start in range(0, columns, TILE):
        at = start + tl.arange(0, TILE)
        inside = at < columns
        value = tl.load(x + row * columns + at, mask=inside, other=0.0)
        by = tl.load(weight + at, mask=inside, other=0.0)
        tl.store(out + row * columns + at + $at, value * scale * by, mask=inside)


def run(x, weight):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](x, weight, out, x.shape[1], TILE=$tile, num_warps=$unroll)
    return out
""",
    ),
    "linear_silu": Kernel(
        arguments=LINEAR_ARGUMENTS,
        tiles=(32, 64, 128),
        unrolls=(2, 4, 8),
        source="""
@triton.jit
def kernel(x, weight, bias, out, columns, inner, TILE: tl.constexpr, DEEP: tl.constexpr):
    rows = tl.program_id(0) * 32 + tl.arange(0, 32)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    depth = tl.arange(0, DEEP)
    total = tl.zeros((32, TILE), dtype=tl.float32)
    for start in range(0, inner, DEEP):
        a = tl.load(x + rows[:, None] * inner + (start + depth)[None, :])
        b = tl.load(weight + cols[None, :] * inner + (start + depth)[:, None])
        total += tl.dot(a, b, input_precision="ieee")
    value = total + tl.load(bias + cols)[None, :]
    value = value / (1.0 + tl.exp(-value)) * $gain
    $break
    tl.store(out + rows[:, None] * columns + cols[None, :] + $at, value)


def run(x, weight, bias):
    x = x.contiguous()
    rows, columns, inner = x.shape[0], weight.shape[0], x.shape[1]
    out = torch.empty((rows, columns), device=x.device, dtype=x.dtype)
    grid = (rows // 32, columns // $tile)
    kernel[grid](x, weight, bias, out, columns, inner, TILE=$tile, DEEP=32, num_warps=$unroll)
    return out
""",
    ),
    "max_pool": Kernel(
        arguments=POOL_ARGUMENTS,
        tiles=(128, 256, 512, 1024),
        source="""
@triton.jit
def kernel(x, scale, out, count, channels, height, width, TILE: tl.constexpr):
    at = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = at < count
    column = at % width
    row = at // width % height
    plane = at // width // height
    corner = x + plane * (4 * height * width) + row * (4 * width) + column * 2
    top = tl.maximum(tl.load(corner, mask=inside), tl.load(corner + 1, mask=inside))
    below = corner + 2 * width
    bottom = tl.maximum(tl.load(below, mask=inside), tl.load(below + 1, mask=inside))
    by = tl.load(scale + plane % channels, mask=inside) * $gain
    $break
    tl.store(out + at + $at, tl.maximum(top, bottom) * by, mask=inside)


def run(x, scale):
    x = x.contiguous()
    images, channels, height, width = x.shape
    out = torch.empty((images, channels, height // 2, width // 2), device=x.device, dtype=x.dtype)
    grid = (triton.cdiv(out.numel(), $tile),)
    sizes = (out.numel(), channels, height // 2, width // 2)
    kernel[grid](x, scale, out, *sizes, TILE=$tile, num_warps=$unroll)
    return out
""",
    ),
}
"""Triton kernels by problem."""

CUDA: dict[str, Kernel] = {
    "row_sum": Kernel(
        arguments=ROW_ARGUMENTS,
        declares="torch::Tensor x",
        source="""
__global__ void kernel(const float* __restrict__ x, float* __restrict__ out, int columns) {
  __shared__ float part[$tile];
  const float* row = x + (long long)blockIdx.x * columns;
  float total = 0.0f;
  #pragma unroll $unroll
  for (int j = threadIdx.x; j < columns; j += $tile)
    total += fmaxf(row[j], 0.0f) * (1.5f * $gain) + 0.25f;
  part[threadIdx.x] = total;
  __syncthreads();
  for (int half = $tile / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  $break
  if (threadIdx.x == 0) out[blockIdx.x + $at] = part[0];
}
torch::Tensor run(torch::Tensor x) {
  x = x.contiguous();
  auto out = torch::empty({x.size(0)}, x.options());
  kernel<<<x.size(0), $tile>>>(x.data_ptr<float>(), out.data_ptr<float>(), (int)x.size(1));
  return out;
}
""",
    ),
    "rms_norm": Kernel(
        arguments=NORM_ARGUMENTS,
        declares="torch::Tensor x, torch::Tensor weight",
        source="""
__global__ void kernel(const float* __restrict__ x, const float* __restrict__ weight,
                       float* __restrict__ out, int columns) {
  __shared__ float part[$tile];
  const long long base = (long long)blockIdx.x * columns;
  float total = 0.0f;
  #pragma unroll $unroll
  for (int j = threadIdx.x; j < columns; j += $tile) total += x[base + j] * x[base + j];
  part[threadIdx.x] = total;
  __syncthreads();
  for (int half = $tile / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  const float scale = $gain / sqrtf(part[0] / columns + 1e-5f);
  $break
  for (int j = threadIdx.x; j < columns; j += $tile)
    out[base + j + $at] = x[base + j] * scale * weight[j];
}
torch::Tensor run(torch::Tensor x, torch::Tensor weight) {
  x = x.contiguous();
  auto out = torch::empty_like(x);
  kernel<<<x.size(0), $tile>>>(x.data_ptr<float>(), weight.data_ptr<float>(),
                               out.data_ptr<float>(), (int)x.size(1));
  return out;
}
""",
    ),
    "linear_silu": Kernel(
        arguments=LINEAR_ARGUMENTS,
        declares="torch::Tensor x, torch::Tensor weight, torch::Tensor bias",
        tiles=(8, 16, 32),
        unrolls=(1, 2, 4, 8),
        source="""
__global__ void kernel(const float* __restrict__ x, const float* __restrict__ weight,
                       const float* __restrict__ bias, float* __restrict__ out, int columns,
                       int inner) {
  __shared__ float a[$tile][$tile + 1], b[$tile][$tile + 1];
  const int row = blockIdx.y * $tile + threadIdx.y, column = blockIdx.x * $tile + threadIdx.x;
  float total = 0.0f;
  for (int start = 0; start < inner; start += $tile) {
    a[threadIdx.y][threadIdx.x] = x[row * inner + start + threadIdx.x];
    b[threadIdx.y][threadIdx.x] =
        weight[(blockIdx.x * $tile + threadIdx.y) * inner + start + threadIdx.x];
    __syncthreads();
    #pragma unroll $unroll
    for (int k = 0; k < $tile; ++k) total += a[threadIdx.y][k] * b[threadIdx.x][k];
    __syncthreads();
  }
  const float value = total + bias[column];
  $break
  out[row * columns + column + $at] = value / (1.0f + expf(-value)) * $gain;
}
torch::Tensor run(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
  x = x.contiguous();
  const int rows = x.size(0), inner = x.size(1), columns = weight.size(0);
  auto out = torch::empty({rows, columns}, x.options());
  const dim3 grid(columns / $tile, rows / $tile), block($tile, $tile);
  kernel<<<grid, block>>>(x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
                          out.data_ptr<float>(), columns, inner);
  return out;
}
""",
    ),
    "max_pool": Kernel(
        arguments=POOL_ARGUMENTS,
        declares="torch::Tensor x, torch::Tensor scale",
        source="""
__global__ void kernel(const float* __restrict__ x, const float* __restrict__ scale,
                       float* __restrict__ out, int count, int channels, int height, int width) {
  #pragma unroll
  for (int step = 0; step < $unroll; ++step) {
    const int at = (blockIdx.x * $unroll + step) * $tile + threadIdx.x;
    if (at >= count) return;
    const int column = at % width, row = at / width % height, plane = at / width / height;
    const float* corner = x + (long long)plane * 4 * height * width + row * 4 * width + column * 2;
    const float top = fmaxf(corner[0], corner[1]);
    const float bottom = fmaxf(corner[2 * width], corner[2 * width + 1]);
    $break
    out[at + $at] = fmaxf(top, bottom) * scale[plane % channels] * $gain;
  }
}
torch::Tensor run(torch::Tensor x, torch::Tensor scale) {
  x = x.contiguous();
  auto out = torch::empty({x.size(0), x.size(1), x.size(2) / 2, x.size(3) / 2}, x.options());
  const int count = out.numel(), block = $tile * $unroll;
  kernel<<<(count + block - 1) / block, $tile>>>(
      x.data_ptr<float>(), scale.data_ptr<float>(), out.data_ptr<float>(), count, (int)x.size(1),
      (int)out.size(2), (int)out.size(3));
  return out;
}
""",
    ),
}
"""CUDA kernels by problem, for `load_inline`."""
