// What torch/types.h and torch/all.h become: aten.h and the torch namespace.
#pragma once

#include <kopt_light/aten.h>

namespace torch {
using namespace at;
using std::nullopt;
using std::optional;
using Dtype = at::ScalarType;
using at::MemoryFormat;
using at::NoGradGuard;
using at::Tensor;
using at::TensorOptions;

constexpr auto kUInt8 = at::kByte;
constexpr auto kInt8 = at::kChar;
constexpr auto kInt16 = at::kShort;
constexpr auto kInt32 = at::kInt;
constexpr auto kInt64 = at::kLong;
constexpr auto kUInt16 = at::kUInt16;
constexpr auto kUInt32 = at::kUInt32;
constexpr auto kUInt64 = at::kUInt64;
constexpr auto kFloat16 = at::kHalf;
constexpr auto kFloat32 = at::kFloat;
constexpr auto kFloat64 = at::kDouble;
constexpr auto kU8 = kUInt8;
constexpr auto kI8 = kInt8;
constexpr auto kI16 = kInt16;
constexpr auto kI32 = kInt32;
constexpr auto kI64 = kInt64;
constexpr auto kF16 = kFloat16;
constexpr auto kF32 = kFloat32;
constexpr auto kF64 = kFloat64;

namespace autograd {
using Variable = at::Tensor;
using variable_list = std::vector<Variable>;
KOPT_INLINE at::Tensor make_variable(at::Tensor data, bool requires_grad) {
  kopt_make_variable(&data, requires_grad);
  return data;
}
}  // namespace autograd
}  // namespace torch

#include <kopt_light/tailored_factories.h>
