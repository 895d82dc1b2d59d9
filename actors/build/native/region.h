// What the bridge keeps, in a place that the light headers give it, while a thread works on a share
// of a parallel region.
#pragma once

#include <ATen/Parallel.h>
#include <c10/util/ParallelGuard.h>

struct KoptRegion {
  explicit KoptRegion(int number) : thread(number), parallel(true) {}
  at::internal::ThreadIdGuard thread;
  c10::ParallelGuard parallel;
};
