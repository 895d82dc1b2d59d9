// Launch checks, devices and streams of c10::cuda. Guards and what at::cuda adds are in headers of
// their own: what does not compile against torch's headers must not compile here.
#pragma once

#include <cuda_runtime_api.h>

#include <kopt_light/values.h>

extern "C" {
void kopt_cuda_check(int error, const char* file, const char* function, uint32_t line);
void kopt_cuda_stream(int device, void** stream, int64_t* id, int* index);
void kopt_cuda_default_stream(int device, void** stream, int64_t* id, int* index);
void kopt_cuda_synchronize_stream(void* stream);
int kopt_cuda_device();
void kopt_cuda_set_device(int device);
int kopt_cuda_exchange_device(int device);
int kopt_cuda_device_count();
const void* kopt_cuda_properties(int device);
}

namespace c10::cuda {

class CUDAStream {
 public:
  KOPT_INLINE operator cudaStream_t() const { return stream_; }
  KOPT_INLINE cudaStream_t stream() const { return stream_; }
  KOPT_INLINE StreamId id() const { return id_; }
  KOPT_INLINE DeviceIndex device_index() const { return index_; }
  KOPT_INLINE Device device() const { return Device(DeviceType::CUDA, index_); }
  KOPT_INLINE void synchronize() const { kopt_cuda_synchronize_stream(stream_); }
  KOPT_INLINE static CUDAStream make(
      void (*ask)(int, void**, int64_t*, int*), DeviceIndex device) {
    void* stream = nullptr;
    int index = -1;
    CUDAStream made;
    ask(device, &stream, &made.id_, &index);
    made.stream_ = static_cast<cudaStream_t>(stream);
    made.index_ = static_cast<DeviceIndex>(index);
    return made;
  }

 private:
  KOPT_INLINE CUDAStream() {}
  cudaStream_t stream_ = nullptr;
  StreamId id_ = 0;
  DeviceIndex index_ = -1;
};
KOPT_INLINE CUDAStream getCurrentCUDAStream(DeviceIndex device = -1) {
  return CUDAStream::make(kopt_cuda_stream, device);
}
KOPT_INLINE CUDAStream getDefaultCUDAStream(DeviceIndex device = -1) {
  return CUDAStream::make(kopt_cuda_default_stream, device);
}
KOPT_INLINE DeviceIndex current_device() { return static_cast<DeviceIndex>(kopt_cuda_device()); }
KOPT_INLINE DeviceIndex device_count() {
  return static_cast<DeviceIndex>(kopt_cuda_device_count());
}
KOPT_INLINE void set_device(DeviceIndex device) { kopt_cuda_set_device(device); }

}  // namespace c10::cuda

namespace at::cuda {
using namespace c10::cuda;
}

#define C10_CUDA_CHECK(EXPR)                                                                \
  do {                                                                                      \
    const cudaError_t kopt_error = EXPR;                                                    \
    kopt_cuda_check(                                                                        \
        static_cast<int>(kopt_error), __FILE__, __func__, static_cast<uint32_t>(__LINE__)); \
  } while (0)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
