// What ATen/ATen.h becomes: tensors with the functions of at:: that the source calls.
#pragma once

#include <kopt_light/parallel.h>
#include <kopt_light/tensor.h>
#if KOPT_DISPATCH
#include <ATen/Dispatch.h>
#endif

namespace at {
// Factories of torch:: make their tensor below autograd.
struct AutoDispatchBelowADInplaceOrView {
  KOPT_INLINE AutoDispatchBelowADInplaceOrView() {
    kopt_enter_below_autograd(place, sizeof(place));
  }
  KOPT_INLINE ~AutoDispatchBelowADInplaceOrView() { kopt_leave_below_autograd(place); }
  AutoDispatchBelowADInplaceOrView(const AutoDispatchBelowADInplaceOrView&) = delete;
  alignas(16) char place[KOPT_SIZEOF_BELOW_AUTOGRAD];
};
struct NoGradGuard {
  KOPT_INLINE NoGradGuard() { kopt_enter_no_grad(place, sizeof(place)); }
  KOPT_INLINE ~NoGradGuard() { kopt_leave_no_grad(place); }
  NoGradGuard(const NoGradGuard&) = delete;
  alignas(16) char place[KOPT_SIZEOF_NO_GRAD];
};
}  // namespace at

namespace at {
KOPT_INLINE std::optional<Device> device_of(const TensorBase& tensor) {
  if (tensor.defined()) return tensor.device();
  return std::nullopt;
}
}  // namespace at

#include <kopt_light/tailored_functions.h>
