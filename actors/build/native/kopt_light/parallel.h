// at::parallel_for: as in torch, the range is split among threads only in a source that is compiled
// with OpenMP.
#pragma once

#include <cstdint>
#include <exception>

#include <kopt_light/bridge.h>
#include <kopt_light/layout.h>
#ifdef _OPENMP
#include <omp.h>
#endif

namespace at {

KOPT_INLINE int get_num_threads() { return kopt_num_threads(); }
KOPT_INLINE int get_thread_num() { return kopt_thread_num(); }
KOPT_INLINE void set_num_threads(int count) { kopt_set_num_threads(count); }
KOPT_INLINE bool in_parallel_region() { return kopt_in_parallel_region(); }

namespace internal {

// The calling thread is one of a parallel region's, under a number.
struct Region {
  KOPT_INLINE explicit Region(int number) { kopt_enter_region(place, number); }
  KOPT_INLINE ~Region() { kopt_leave_region(place); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  alignas(8) char place[KOPT_SIZEOF_REGION];
};

#ifdef _OPENMP
template <typename F>
void share_range(int64_t begin, int64_t end, int64_t grain_size, const F& body) {
  std::exception_ptr failure;
#pragma omp parallel
  {
    int64_t shares = omp_get_num_threads();
    const int64_t count = end - begin;
    const int64_t wanted = grain_size > 0 ? (count + grain_size - 1) / grain_size : shares;
    if (wanted < shares) shares = wanted;
    const int64_t share = (count + shares - 1) / shares;
    const int number = omp_get_thread_num();
    const int64_t first = begin + number * share;
    if (first < end) {
      try {
        Region region(number);
        body(first, end < first + share ? end : first + share);
      } catch (...) {
#pragma omp critical(kopt_parallel_for)
        if (!failure) failure = std::current_exception();
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}
#endif

}  // namespace internal

template <typename F>
KOPT_INLINE void parallel_for(int64_t begin, int64_t end, int64_t grain_size, const F& body) {
  if (begin >= end) return;
#ifdef _OPENMP
  const int64_t count = end - begin;
  if (count > grain_size && count > 1 && !in_parallel_region() && get_num_threads() > 1) {
    internal::share_range(begin, end, grain_size, body);
    return;
  }
#endif
  internal::Region region(0);
  body(begin, end);
}

}  // namespace at
