"""The candidates of bench_builds.py: C++ and CUDA extensions of many kinds, and calls of each."""

from __future__ import annotations

_HEAD = """
import torch
from torch.utils.cpp_extension import load, load_inline
torch.manual_seed(0)
"""


def _inline(
    source: str, functions: str, calls: str, *, flags: str = "['-O3']", links: str = "None"
) -> str:
    return (
        f"{_HEAD}\nmodule = load_inline(name='candidate_ext', cpp_sources=r'''{source}''',"
        f" functions={functions}, extra_cflags={flags}, extra_ldflags={links})\n"
        f"def calls():\n    x = torch.randn(64, 96)\n    return [{calls}]\n"
    )


CPU: dict[str, str] = {
    "openmp": _inline(
        """
torch::Tensor gelu(torch::Tensor x) {
  TORCH_CHECK(x.is_contiguous() && x.scalar_type() == torch::kFloat32, "contiguous float32");
  auto y = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  const int64_t n = x.numel();
  #pragma omp parallel for simd
  for (int64_t i = 0; i < n; ++i) to[i] = 0.5f * from[i] * (1.0f + std::erf(from[i] * 0.70710678f));
  return y;
}""",
        "['gelu']",
        "lambda: module.gelu(x), lambda: module.gelu(x.double()), lambda: module.gelu(x.t())",
        flags="['-O3', '-march=native', '-ffast-math', '-fopenmp']",
        links="['-fopenmp']",
    ),
    "functions": _inline(
        """
torch::Tensor add_relu(const torch::Tensor& a, const torch::Tensor& b) {
  auto out = torch::zeros(a.sizes(), a.options());
  auto pa = a.accessor<float, 2>(), pb = b.accessor<float, 2>();
  auto po = out.accessor<float, 2>();
  for (int i = 0; i < a.size(0); i++)
    for (int j = 0; j < a.size(1); j++) po[i][j] = std::max(pa[i][j] + pb[i][j], 0.0f);
  return out;
}
std::tuple<torch::Tensor, int64_t> row_max(torch::Tensor x) {
  auto out = torch::empty({x.size(0)}, x.options());
  for (int64_t i = 0; i < x.size(0); ++i) {
    float best = -INFINITY;
    for (int64_t j = 0; j < x.size(1); ++j)
      best = std::fmax(best, x.data_ptr<float>()[i * x.stride(0) + j * x.stride(1)]);
    out.data_ptr<float>()[i] = best;
  }
  return std::make_tuple(out, x.dim());
}
bool is_even(int n) { return n % 2 == 0; }
double scale(double a, float b) { return a * b; }""",
        "['add_relu', 'row_max', 'is_even', 'scale']",
        "lambda: module.add_relu(x, x * 2), lambda: module.row_max(x.t()),"
        " lambda: module.is_even(3), lambda: module.is_even(3.0), lambda: module.scale(2, 1.5)",
    ),
    "lists": _inline(
        """
std::vector<torch::Tensor> halves(std::vector<torch::Tensor> all, const std::vector<double>& by) {
  TORCH_CHECK(all.size() == by.size(), "as many factors as tensors: ", all.size(), ", ", by.size());
  std::vector<torch::Tensor> out;
  for (size_t i = 0; i < all.size(); ++i) out.push_back(all[i].mul(by[i]).contiguous());
  return out;
}
torch::Tensor total(at::TensorList all) {
  auto sum = torch::zeros_like(all[0]);
  for (const auto& each : all) sum += each;
  return sum;
}
torch::Tensor sum_all(const std::vector<at::Tensor>& all) { return total(all); }""",
        "['halves', 'sum_all']",
        "lambda: module.halves([x, x[0]], [0.5, 2]), lambda: module.halves((x,), (1, 2)),"
        " lambda: module.sum_all([x, x, x]), lambda: module.sum_all(x)",
    ),
    "optional": _inline(
        """
torch::Tensor linear(
    torch::Tensor x, torch::Tensor w, c10::optional<torch::Tensor> bias, std::string mode) {
  auto y = at::matmul(x, w.t());
  if (bias.has_value()) y = y + bias.value();
  if (mode == "relu") return at::relu(y);
  TORCH_CHECK_VALUE(mode == "none", "unknown mode ", mode);
  return y;
}""",
        "['linear']",
        "lambda: module.linear(x, x, None, 'none'), lambda: module.linear(x, x, x[:, 0], 'relu'),"
        " lambda: module.linear(x, x, None, 'what'), lambda: module.linear(None, x, None, 'none')",
    ),
    "aten": _inline(
        """
torch::Tensor attention(torch::Tensor q, torch::Tensor k, torch::Tensor v) {
  auto scores = torch::matmul(q, k.transpose(-2, -1)) / std::sqrt((double)q.size(-1));
  auto weights = torch::softmax(scores, -1);
  auto out = torch::matmul(weights, v).view({-1, v.size(-1)});
  return torch::cat({out, out.mean(0, /*keepdim=*/true)}, 0).to(torch::kFloat64).sum({1});
}""",
        "['attention']",
        "lambda: module.attention(x, x, x), lambda: module.attention(x, x[:3].t(), x)",
    ),
    "own_module": f"""{_HEAD}
module = load_inline(name="candidate_ext", cpp_sources=r'''
#include <torch/extension.h>
#include <vector>
namespace py = pybind11;
torch::Tensor scale(torch::Tensor x, double by, int64_t times) {{
  for (int64_t i = 0; i < times; ++i) x = x * by;
  if (times > 8) throw std::invalid_argument("too often");
  return x;
}}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{
  m.doc() = "scaling";
  m.def("scale", &scale, "scale", py::arg("x"), py::arg("by") = 2.0, py::arg("times") = 1);
  m.def("total", [](torch::Tensor x) {{ return x.sum().item<float>(); }},
        py::call_guard<py::gil_scoped_release>());
}}''')
def calls():
    x = torch.randn(64, 96)
    return [lambda: module.scale(x), lambda: module.scale(x, times=3), lambda: module.total(x),
            lambda: module.scale(x, times=9), lambda: module.scale(x, no=1),
            lambda: module.scale(by=3, x=x)]
""",
    "dispatch": _inline(
        """
template <typename scalar_t>
void cube(const scalar_t* from, scalar_t* to, int64_t n) {
  at::parallel_for(0, n, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = from[i] * from[i] * from[i];
  });
}
torch::Tensor power(torch::Tensor x) {
  x = x.contiguous();
  torch::Tensor y = torch::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "power", [&] {
    cube<scalar_t>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel());
  });
  return y;
}""",
        "['power']",
        "lambda: module.power(x), lambda: module.power(x.double()), lambda: module.power(x.half()),"
        " lambda: module.power(x.bfloat16()), lambda: module.power(x.int())",
    ),
    "files": f"""{_HEAD}
from pathlib import Path
Path("kernel.h").write_text('''
#pragma once
#include <torch/extension.h>
torch::Tensor prefix(const torch::Tensor& x);
''')
Path("kernel.cpp").write_text('''
#include "kernel.h"
#include <immintrin.h>
torch::Tensor prefix(const torch::Tensor& x) {{
  auto y = x.clone();
  float* p = y.data_ptr<float>();
  const int64_t n = y.size(1);
  for (int64_t i = 0; i < y.size(0); ++i)
    for (int64_t j = 1; j < n; ++j) p[i * n + j] += p[i * n + j - 1];
  return y;
}}
''')
Path("bind.cpp").write_text('''
#include "kernel.h"
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("prefix", &prefix, "prefix sums"); }}
''')
module = load(name="candidate_ext", sources=["kernel.cpp", "bind.cpp"], extra_cflags=["-O2"])
def calls():
    x = torch.randn(64, 96)
    return [lambda: module.prefix(x), lambda: module.prefix(x.t().contiguous())]
""",
    "containers": _inline(
        """
std::vector<int64_t> order(torch::Tensor x, int64_t k) {
  const float* p = x.data_ptr<float>();
  std::vector<int64_t> index(x.numel());
  std::iota(index.begin(), index.end(), 0);
  std::partial_sort(index.begin(), index.begin() + k, index.end(), [&](int64_t a, int64_t b) {
    return p[a] > p[b];
  });
  index.resize(k);
  return index;
}
std::string describe(torch::Tensor x) {
  std::unordered_map<int64_t, int> count;
  for (int64_t size : x.sizes()) count[size]++;
  std::ostringstream words;
  words << x.dim() << " dims, " << count.size() << " sizes";
  return words.str();
}""",
        "['order', 'describe']",
        "lambda: module.order(x.flatten(), 7), lambda: module.describe(x)",
    ),
    "check_fails": _inline(
        """
torch::Tensor strict(torch::Tensor x, at::IntArrayRef shape) {
  TORCH_CHECK(x.sizes() == shape, "expected ", shape, ", found ", x.sizes(), " of ", x.dtype());
  return x[0][0] + x.select(0, 1).narrow(0, 0, 2);
}""",
        "['strict']",
        "lambda: module.strict(x, [64, 96]), lambda: module.strict(x, (64, 97)),"
        " lambda: module.strict(x.double(), [1]), lambda: module.strict(x, [1.5])",
    ),
    "does_not_compile": _inline(
        """
torch::Tensor broken(torch::Tensor x) {
  auto y = x.no_such_method(1);
  return y + undeclared;
}""",
        "['broken']",
        "lambda: module.broken(x)",
    ),
}
"""C++ candidates by name. The last does not compile: the words are torch's own."""

_CUDA_HEAD = "#include <torch/extension.h>\n#include <cuda_runtime.h>\n"


def _cuda(
    cpp: str, cuda: str, functions: str, calls: str, *, flags: str = "['-O3', '--use_fast_math']"
) -> str:
    return (
        f"{_HEAD}\nmodule = load_inline(name='candidate_ext', cpp_sources=r'''{cpp}''',"
        f" cuda_sources=r'''{cuda}''', functions={functions}, extra_cuda_cflags={flags})\n"
        f"def calls():\n    x = torch.randn(256, 512, device='cuda')\n    return [{calls}]\n"
    )


CUDA: dict[str, str] = {
    "elementwise": _cuda(
        "torch::Tensor gelu(torch::Tensor x);",
        _CUDA_HEAD
        + """
__global__ void kernel(const float* __restrict__ a, float* __restrict__ b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = 0.5f * a[i] * (1.0f + erff(a[i] * 0.70710678f));
}
torch::Tensor gelu(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "expected a CUDA tensor, found one on ", x.device());
  auto y = torch::empty_like(x);
  int n = x.numel();
  kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}""",
        "['gelu']",
        "lambda: module.gelu(x), lambda: module.gelu(x.cpu()), lambda: module.gelu(x.double())",
    ),
    "row_softmax": _cuda(
        "torch::Tensor rows(torch::Tensor x);",
        """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
template <typename scalar_t>
__global__ void kernel(const scalar_t* a, scalar_t* b, int cols) {
  __shared__ float part[32];
  const scalar_t* row = a + (int64_t)blockIdx.x * cols;
  float best = -INFINITY;
  for (int j = threadIdx.x; j < cols; j += blockDim.x) best = fmaxf(best, (float)row[j]);
  for (int o = 16; o > 0; o >>= 1) best = fmaxf(best, __shfl_xor_sync(~0u, best, o));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = best;
  __syncthreads();
  best = part[0];
  for (int w = 1; w < blockDim.x / 32; ++w) best = fmaxf(best, part[w]);
  __syncthreads();
  float sum = 0;
  for (int j = threadIdx.x; j < cols; j += blockDim.x) sum += expf((float)row[j] - best);
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) sum += part[w];
  for (int j = threadIdx.x; j < cols; j += blockDim.x)
    b[(int64_t)blockIdx.x * cols + j] = (scalar_t)(expf((float)row[j] - best) / sum);
}
torch::Tensor rows(torch::Tensor x) {
  const at::cuda::OptionalCUDAGuard guard(at::device_of(x));
  auto y = torch::empty(x.sizes(), x.options());
  auto stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "rows", ([&] {
    kernel<scalar_t><<<x.size(0), 128, 0, stream>>>(
        x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.size(1));
  }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}""",
        "['rows']",
        "lambda: module.rows(x), lambda: module.rows(x.half()), lambda: module.rows(x.int())",
    ),
    "tiled_matmul": _cuda(
        "torch::Tensor matmul(torch::Tensor a, torch::Tensor b);",
        _CUDA_HEAD
        + """
#define T 16
__global__ void kernel(
    torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> a,
    torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> b,
    torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> c) {
  __shared__ float sa[T][T], sb[T][T];
  int i = blockIdx.y * T + threadIdx.y, j = blockIdx.x * T + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < a.size(1); k += T) {
    sa[threadIdx.y][threadIdx.x] = a[i][k + threadIdx.x];
    sb[threadIdx.y][threadIdx.x] = b[k + threadIdx.y][j];
    __syncthreads();
    for (int t = 0; t < T; ++t) sum += sa[threadIdx.y][t] * sb[t][threadIdx.x];
    __syncthreads();
  }
  c[i][j] = sum;
}
torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.size(1) == b.size(0), "inner sizes ", a.size(1), " and ", b.size(0));
  auto c = torch::zeros({a.size(0), b.size(1)}, a.options());
  dim3 grid(b.size(1) / T, a.size(0) / T), block(T, T);
  kernel<<<grid, block>>>(
      a.packed_accessor32<float, 2, torch::RestrictPtrTraits>(),
      b.packed_accessor32<float, 2, torch::RestrictPtrTraits>(),
      c.packed_accessor32<float, 2, torch::RestrictPtrTraits>());
  return c;
}""",
        "['matmul']",
        "lambda: module.matmul(x, x.t().contiguous()), lambda: module.matmul(x, x)",
    ),
    "with_aten": _cuda(
        "std::vector<torch::Tensor> fused(torch::Tensor x, std::optional<torch::Tensor> bias);",
        _CUDA_HEAD
        + """
__global__ void kernel(float* a, const float* bias, int rows, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * cols) a[i] = fmaxf(a[i] + (bias ? bias[i % cols] : 0.0f), 0.0f);
}
std::vector<torch::Tensor> fused(torch::Tensor x, std::optional<torch::Tensor> bias) {
  auto y = at::matmul(x, x.t()).contiguous();
  const int rows = y.size(0), cols = y.size(1);
  kernel<<<(rows * cols + 255) / 256, 256>>>(
      y.data_ptr<float>(), bias.has_value() ? bias->data_ptr<float>() : nullptr, rows, cols);
  return {y, y.sum(-1), y.to(torch::kHalf)};
}""",
        "['fused']",
        "lambda: module.fused(x, None), lambda: module.fused(x, x[0, :256].contiguous())",
    ),
    "does_not_compile": _cuda(
        "torch::Tensor broken(torch::Tensor x);",
        _CUDA_HEAD
        + """
__global__ void kernel(float* a) { a[threadIdx.x] = undeclared; }
torch::Tensor broken(torch::Tensor x) {
  kernel<<<1, 32>>>(x.data_ptr<float>());
  return x;
}""",
        "['broken']",
        "lambda: module.broken(x)",
    ),
}
"""CUDA candidates by name. The last does not compile."""
