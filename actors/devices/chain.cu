// What a GPU's chain of timed calls is made of (cuda_content.py), queued between the calls.
//
// Each does what kopt.actors.child.perturb, .digest and kopt.actors.devices.pool do with torch, in
// one launch: what passes between two calls is time that a candidate could save for itself.

typedef unsigned long long u64;
typedef long long i64;

namespace {

constexpr i64 MODULUS = (1LL << 31) - 1;
constexpr u64 ODD = 0x9E3779B97F4A7C15ull;
constexpr int WARP = 32;

__device__ void add_up(u64 mine, u64* total) {
  __shared__ u64 of_warps[WARP];
  for (int step = WARP / 2; step > 0; step /= 2) mine += __shfl_down_sync(~0u, mine, step);
  if (threadIdx.x % WARP == 0) of_warps[threadIdx.x / WARP] = mine;
  __syncthreads();
  if (threadIdx.x >= WARP) return;
  mine = threadIdx.x < blockDim.x / WARP ? of_warps[threadIdx.x] : 0;
  for (int step = WARP / 2; step > 0; step /= 2) mine += __shfl_down_sync(~0u, mine, step);
  if (threadIdx.x == 0) atomicAdd(total, mine);
}

__device__ u64 mixed(u64 word, u64 by) {
  word = (word ^ by) * ODD;
  return word ^ (word >> 32);
}

__device__ i64 place(u64 word, i64 factor, i64 summand, i64 room) {
  i64 residue = static_cast<i64>(word) % MODULUS;
  if (residue < 0) residue += MODULUS;
  return (residue * factor + summand) % MODULUS % room;
}

__device__ void copy(char* to, const char* from, int size) {
  switch (size) {
    case 1: *to = *from; break;
    case 2: *reinterpret_cast<short*>(to) = *reinterpret_cast<const short*>(from); break;
    case 4: *reinterpret_cast<int*>(to) = *reinterpret_cast<const int*>(from); break;
    default:
      for (int at = 0; at < size; at += 8)
        *reinterpret_cast<i64*>(to + at) = *reinterpret_cast<const i64*>(from + at);
  }
}

}  // namespace

// Adds to `total` the sum of words, and of the bytes after them.
extern "C" __global__ void digest_words(const u64* words, u64 count, const unsigned char* rest,
                                        int rest_bytes, u64* total) {
  u64 first = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
  u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  u64 mine = 0;
  u64 paired = reinterpret_cast<u64>(words) % sizeof(ulonglong2) ? 0 : count / 2;
  const ulonglong2* pairs = reinterpret_cast<const ulonglong2*>(words);
#pragma unroll 4
  for (u64 at = first; at < paired; at += step) {
    ulonglong2 pair = pairs[at];
    mine += pair.x + pair.y;
  }
  for (u64 at = 2 * paired + first; at < count; at += step) mine += words[at];
  if (first < rest_bytes) mine += rest[first];
  add_up(mine, total);
}

// Adds to `total` the sum of a pool's words, each mixed with a digest that is known only now.
extern "C" __global__ void sweep(const ulonglong2* pool, u64 pairs, const u64* digest, u64* total) {
  u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  u64 by = *digest;
  u64 mine = 0;
#pragma unroll 8
  for (u64 at = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; at < pairs; at += step) {
    ulonglong2 pair = pool[at];
    mine += mixed(pair.x, by) + mixed(pair.y, by);
  }
  add_up(mine, total);
}

// Finds where a stretch goes and comes from; copies what it holds, and what it is to hold.
extern "C" __global__ void stage(const char* flat, int size, i64 length, i64 room,
                                 const u64* digest, const u64* swept, i64 at_factor,
                                 i64 at_summand, i64 from_factor, i64 from_summand, char* held,
                                 char* staged, i64* chosen) {
  u64 word = *digest + *swept;
  i64 at = place(word, at_factor, at_summand, room);
  i64 from = place(word, from_factor, from_summand, room);
  i64 first = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (first == 0) *chosen = at;
  for (i64 each = first; each < length; each += static_cast<i64>(gridDim.x) * blockDim.x) {
    copy(held + each * size, flat + (at + each) * size, size);
    copy(staged + each * size, flat + (from + each) * size, size);
  }
}

// Puts values to where a stretch was chosen to be.
extern "C" __global__ void put(char* flat, int size, i64 length, const i64* chosen,
                               const char* values) {
  i64 at = *chosen;
  i64 first = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (i64 each = first; each < length; each += static_cast<i64>(gridDim.x) * blockDim.x)
    copy(flat + (at + each) * size, values + each * size, size);
}
