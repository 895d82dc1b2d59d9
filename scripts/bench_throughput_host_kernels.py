"""The host's kernels of bench_throughput.py, and torch's own forms of the same problems."""

from __future__ import annotations

from bench_throughput_kernels import (
    LINEAR_ARGUMENTS,
    NORM_ARGUMENTS,
    POOL_ARGUMENTS,
    ROW_ARGUMENTS,
    Kernel,
)

CPP: dict[str, Kernel] = {
    "row_sum": Kernel(
        arguments=ROW_ARGUMENTS,
        declares="torch::Tensor x",
        tiles=(8, 16, 32, 64),
        source="""
torch::Tensor run(torch::Tensor x) {
  x = x.contiguous();
  const int64_t rows = x.size(0), columns = x.size(1);
  auto out = torch::empty({rows}, x.options());
  const float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  $fault
  #pragma omp parallel for num_threads($unroll)
  for (int64_t i = 0; i < rows; ++i) {
    float part[$tile] = {};
    for (int64_t j = 0; j < columns; j += $tile)
      for (int64_t k = 0; k < $tile; ++k)
        part[k] += std::max(from[i * columns + j + k], 0.0f) * (1.5f * $gain) + 0.25f;
    float total = 0.0f;
    for (int64_t k = 0; k < $tile; ++k) total += part[k];
    $break
    to[i] = total;
  }
  return out;
}
""",
    ),
    "rms_norm": Kernel(
        arguments=NORM_ARGUMENTS,
        declares="torch::Tensor x, torch::Tensor weight",
        tiles=(8, 16, 32, 64),
        source="""
torch::Tensor run(torch::Tensor x, torch::Tensor weight) {
  x = x.contiguous();
  const int64_t rows = x.size(0), columns = x.size(1);
  auto out = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  const float* by = weight.data_ptr<float>();
  float* to = out.data_ptr<float>();
  $fault
  #pragma omp parallel for num_threads($unroll)
  for (int64_t i = 0; i < rows; ++i) {
    float part[$tile] = {};
    for (int64_t j = 0; j < columns; j += $tile)
      for (int64_t k = 0; k < $tile; ++k)
        part[k] += from[i * columns + j + k] * from[i * columns + j + k];
    float total = 0.0f;
    for (int64_t k = 0; k < $tile; ++k) total += part[k];
    const float scale = $gain / std::sqrt(total / columns + 1e-5f);
    $break
    for (int64_t j = 0; j < columns; ++j)
      to[i * columns + j] = from[i * columns + j] * scale * by[j];
  }
  return out;
}
""",
    ),
    "linear_silu": Kernel(
        arguments=LINEAR_ARGUMENTS,
        declares="torch::Tensor x, torch::Tensor weight, torch::Tensor bias",
        tiles=(8, 16, 32, 64),
        source="""
torch::Tensor run(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
  x = x.contiguous();
  const int64_t rows = x.size(0), inner = x.size(1), columns = weight.size(0);
  auto out = torch::empty({rows, columns}, x.options());
  const float* a = x.data_ptr<float>();
  const float* b = weight.data_ptr<float>();
  const float* add = bias.data_ptr<float>();
  float* to = out.data_ptr<float>();
  $fault
  #pragma omp parallel for num_threads($unroll)
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float part[$tile] = {};
      for (int64_t k = 0; k < inner; k += $tile)
        for (int64_t l = 0; l < $tile; ++l)
          part[l] += a[i * inner + k + l] * b[j * inner + k + l];
      float value = add[j];
      for (int64_t l = 0; l < $tile; ++l) value += part[l];
      $break
      to[i * columns + j] = value / (1.0f + std::exp(-value)) * $gain;
    }
  return out;
}
""",
    ),
    "max_pool": Kernel(
        arguments=POOL_ARGUMENTS,
        declares="torch::Tensor x, torch::Tensor scale",
        tiles=(2, 4, 8, 16),
        source="""
torch::Tensor run(torch::Tensor x, torch::Tensor scale) {
  x = x.contiguous();
  const int64_t planes = x.size(0) * x.size(1), height = x.size(2) / 2, width = x.size(3) / 2;
  auto out = torch::empty({x.size(0), x.size(1), height, width}, x.options());
  const float* from = x.data_ptr<float>();
  const float* by = scale.data_ptr<float>();
  float* to = out.data_ptr<float>();
  $fault
  #pragma omp parallel for num_threads($unroll)
  for (int64_t p = 0; p < planes; ++p) {
    const float factor = by[p % x.size(1)] * $gain;
    for (int64_t i = 0; i < height; ++i)
      for (int64_t j = 0; j < width; j += $tile)
        for (int64_t k = j; k < j + $tile; ++k) {
          const float* corner = from + (p * 4 * height + 4 * i) * width + 2 * k;
          const float top = std::max(corner[0], corner[1]);
          const float bottom = std::max(corner[2 * width], corner[2 * width + 1]);
          $break
          to[(p * height + i) * width + k] = std::max(top, bottom) * factor;
        }
  }
  return out;
}
""",
    ),
}
"""C++ kernels by problem, for `load_inline`. `$fault` crashes where the candidate is to."""

TORCH: dict[str, str] = {
    "row_sum": "(F.relu(part) * (1.5 * $gain)).sum(dim=1) + 0.25 * part.shape[1]",
    "rms_norm": "part / (part.square().mean(1, True) + 1e-5).sqrt() * self.weight * $gain",
    "linear_silu": "F.silu(F.linear(part, self.linear.weight, self.linear.bias)) * $gain",
    "max_pool": "part.unfold(2, 2, 2).unfold(3, 2, 2).amax(dim=(-1, -2)) * self.scale * $gain",
}
"""Expressions of torch by problem, over some rows (or images) of `x`."""
