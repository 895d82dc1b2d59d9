// The guards of c10/cuda/CUDAGuard.h: a device that is current for a scope.
#pragma once

#include <kopt_light/cuda.h>

namespace c10::cuda {

struct CUDAGuard {
  KOPT_INLINE explicit CUDAGuard(DeviceIndex device)
      : before_(kopt_cuda_exchange_device(device)) {}
  KOPT_INLINE explicit CUDAGuard(Device device) : before_(exchanged(device)) {}
  KOPT_INLINE ~CUDAGuard() { kopt_cuda_exchange_device(before_); }
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;
  KOPT_INLINE static int exchanged(Device device) {
    TORCH_CHECK(device.is_cuda(), "expected a CUDA device, but got ", device);
    return kopt_cuda_exchange_device(device.has_index() ? device.index() : kopt_cuda_device());
  }

 private:
  int before_;
};
struct OptionalCUDAGuard {
  KOPT_INLINE explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device.has_value()) before_ = CUDAGuard::exchanged(*device);
  }
  KOPT_INLINE ~OptionalCUDAGuard() {
    if (before_ >= 0) kopt_cuda_exchange_device(before_);
  }
  OptionalCUDAGuard(const OptionalCUDAGuard&) = delete;
  OptionalCUDAGuard& operator=(const OptionalCUDAGuard&) = delete;

 private:
  int before_ = -1;
};

}  // namespace c10::cuda
