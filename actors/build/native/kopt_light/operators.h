// The operators of tensors, by the same dispatcher calls as in ATen/TensorOperators.h.
#pragma once

#include <ATen/ops/add_ops.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/empty_like_ops.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/select_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/to_ops.h>

namespace at {

KOPT_INLINE Tensor& Tensor::operator=(const Scalar& value) && {
  return _ops::fill__Scalar::call(*this, value);
}
KOPT_INLINE Tensor& Tensor::operator=(const Tensor& value) && {
  return _ops::copy_::call(*this, value, false);
}
KOPT_INLINE Tensor& Tensor::operator=(Tensor&& value) && {
  return _ops::copy_::call(*this, value, false);
}
KOPT_INLINE Tensor Tensor::operator-() const { return _ops::neg::call(*this); }
KOPT_INLINE Tensor& Tensor::operator+=(const Tensor& other) {
  return _ops::add__Tensor::call(*this, other, 1);
}
KOPT_INLINE Tensor& Tensor::operator+=(const Scalar& other) {
  return _ops::add__Scalar::call(*this, other, 1);
}
KOPT_INLINE Tensor& Tensor::operator-=(const Tensor& other) {
  return _ops::sub__Tensor::call(*this, other, 1);
}
KOPT_INLINE Tensor& Tensor::operator-=(const Scalar& other) {
  return _ops::sub__Scalar::call(*this, other, 1);
}
KOPT_INLINE Tensor& Tensor::operator*=(const Tensor& other) {
  return _ops::mul__Tensor::call(*this, other);
}
KOPT_INLINE Tensor& Tensor::operator*=(const Scalar& other) {
  return _ops::mul__Scalar::call(*this, other);
}
KOPT_INLINE Tensor& Tensor::operator/=(const Tensor& other) {
  return _ops::div__Tensor::call(*this, other);
}
KOPT_INLINE Tensor& Tensor::operator/=(const Scalar& other) {
  return _ops::div__Scalar::call(*this, other);
}
KOPT_INLINE Tensor Tensor::operator[](int64_t index) const {
  return _ops::select_int::call(*this, 0, SymInt(index));
}
namespace detail {
KOPT_INLINE Tensor to_place(const Tensor& self, std::optional<ScalarType> type, Device device) {
  return _ops::to_dtype_layout::call(
      self, type, self.layout(), device, std::nullopt, false, false, std::nullopt);
}
KOPT_INLINE Tensor filled_like(const Tensor& model, const Scalar& value) {
  Tensor made = _ops::empty_like::call(
      model, std::nullopt, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::Preserve);
  _ops::fill__Scalar::call(made, value);
  return made;
}
}  // namespace detail
KOPT_INLINE Tensor Tensor::toType(ScalarType type) const {
  return detail::to_place(*this, type, device());
}
KOPT_INLINE Tensor Tensor::cpu() const {
  return detail::to_place(*this, scalar_type(), Device(kCPU));
}
KOPT_INLINE Tensor Tensor::cuda() const {
  return detail::to_place(*this, scalar_type(), Device(kCUDA));
}

KOPT_INLINE Tensor operator+(const Tensor& a, const Tensor& b) {
  return _ops::add_Tensor::call(a, b, 1);
}
KOPT_INLINE Tensor operator+(const Tensor& a, const Scalar& b) {
  return _ops::add_Scalar::call(a, b, 1);
}
KOPT_INLINE Tensor operator+(const Scalar& a, const Tensor& b) {
  return _ops::add_Scalar::call(b, a, 1);
}
KOPT_INLINE Tensor operator-(const Tensor& a, const Tensor& b) {
  return _ops::sub_Tensor::call(a, b, 1);
}
KOPT_INLINE Tensor operator-(const Tensor& a, const Scalar& b) {
  return _ops::sub_Scalar::call(a, b, 1);
}
KOPT_INLINE Tensor operator*(const Tensor& a, const Tensor& b) {
  return _ops::mul_Tensor::call(a, b);
}
KOPT_INLINE Tensor operator*(const Tensor& a, const Scalar& b) {
  return _ops::mul_Scalar::call(a, b);
}
KOPT_INLINE Tensor operator*(const Scalar& a, const Tensor& b) {
  return _ops::mul_Scalar::call(b, a);
}
KOPT_INLINE Tensor operator/(const Tensor& a, const Tensor& b) {
  return _ops::div_Tensor::call(a, b);
}
KOPT_INLINE Tensor operator/(const Tensor& a, const Scalar& b) {
  return _ops::div_Scalar::call(a, b);
}
KOPT_INLINE Tensor operator-(const Scalar& a, const Tensor& b) {
  Tensor made = detail::filled_like(b, a);
  return _ops::sub__Tensor::call(made, b, 1);
}
KOPT_INLINE Tensor operator/(const Scalar& a, const Tensor& b) {
  Tensor made = detail::filled_like(b, a);
  return _ops::div__Tensor::call(made, b);
}
#define KOPT_COMPARISON(op, name, mirrored)                                    \
  KOPT_INLINE Tensor operator op(const Tensor& a, const Tensor& b) {           \
    return _ops::name##_Tensor::call(a, b);                                    \
  }                                                                            \
  KOPT_INLINE Tensor operator op(const Tensor& a, const Scalar& b) {           \
    return _ops::name##_Scalar::call(a, b);                                    \
  }                                                                            \
  KOPT_INLINE Tensor operator op(const Scalar& a, const Tensor& b) {           \
    return _ops::mirrored##_Scalar::call(b, a);                                \
  }
KOPT_COMPARISON(<, lt, gt)
KOPT_COMPARISON(<=, le, ge)
KOPT_COMPARISON(>, gt, lt)
KOPT_COMPARISON(>=, ge, le)
KOPT_COMPARISON(==, eq, eq)
KOPT_COMPARISON(!=, ne, ne)
#undef KOPT_COMPARISON

}  // namespace at
