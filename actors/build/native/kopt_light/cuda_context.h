// What ATen/cuda/CUDAContext.h adds to streams: the properties of devices, and AT_CUDA_CHECK.
#pragma once

#include <kopt_light/cuda.h>

namespace at::cuda {
KOPT_INLINE cudaDeviceProp* getCurrentDeviceProperties() {
  return const_cast<cudaDeviceProp*>(static_cast<const cudaDeviceProp*>(kopt_cuda_properties(-1)));
}
KOPT_INLINE cudaDeviceProp* getDeviceProperties(DeviceIndex device) {
  return const_cast<cudaDeviceProp*>(
      static_cast<const cudaDeviceProp*>(kopt_cuda_properties(device)));
}
}  // namespace at::cuda

#define AT_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)
