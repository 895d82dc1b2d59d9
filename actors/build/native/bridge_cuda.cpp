// The functions of kopt_light/cuda.h, compiled once against torch's own headers.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "kopt_light/bridge.h"

// Of ATen/cuda/CUDAContextLight.h, which needs the headers of all of CUDA's libraries.
namespace at::cuda {
C10_IMPORT cudaDeviceProp* getCurrentDeviceProperties();
C10_IMPORT cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device);
}  // namespace at::cuda

namespace {
void describe(c10::cuda::CUDAStream of, void** stream, int64_t* id, int* index) {
  *stream = of.stream();
  *id = of.id();
  *index = of.device_index();
}
}  // namespace

extern "C" {

void kopt_cuda_check(int error, const char* file, const char* function, uint32_t line) {
  if (error != static_cast<int>(cudaSuccess)) {
    c10::cuda::c10_cuda_check_implementation(
        static_cast<int32_t>(error), file, function, line, /*include_device_assertions=*/true);
  }
}
void kopt_cuda_stream(int device, void** stream, int64_t* id, int* index) {
  describe(
      c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)), stream, id, index);
}
void kopt_cuda_default_stream(int device, void** stream, int64_t* id, int* index) {
  describe(
      c10::cuda::getDefaultCUDAStream(static_cast<c10::DeviceIndex>(device)), stream, id, index);
}
void kopt_cuda_synchronize_stream(void* stream) {
  C10_CUDA_CHECK(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
}
int kopt_cuda_device() { return c10::cuda::current_device(); }
void kopt_cuda_set_device(int device) {
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
}
int kopt_cuda_exchange_device(int device) {
  return c10::cuda::ExchangeDevice(static_cast<c10::DeviceIndex>(device));
}
int kopt_cuda_device_count() { return c10::cuda::device_count(); }
const void* kopt_cuda_properties(int device) {
  return device < 0 ? at::cuda::getCurrentDeviceProperties()
                    : at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(device));
}

}  // extern "C"
