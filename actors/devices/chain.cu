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
  mine = threadIdx.x < (blockDim.x + WARP - 1) / WARP ? of_warps[threadIdx.x] : 0;
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

struct Strided {
  i64 size_1, size_2, size_3, stride_0, stride_1, stride_2, stride_3;
};

// Where the elements of a thread lie. Each is as many places after the last: that number is
// divided once, and then added with its carries, because to divide takes longer than to read.
template <typename N>
struct Walk {
  N size_1, size_2, size_3, at_1, at_2, at_3, step_1, step_2, step_3;
  i64 at, step, carry_1, carry_2, carry_3;

  __device__ Walk(const Strided& from, N first, N places)
      : size_1(from.size_1), size_2(from.size_2), size_3(from.size_3) {
    at = split(from, first, &at_1, &at_2, &at_3);
    step = split(from, places, &step_1, &step_2, &step_3);
    carry_3 = from.stride_2 - from.size_3 * from.stride_3;
    carry_2 = from.stride_1 - from.size_2 * from.stride_2;
    carry_1 = from.stride_0 - from.size_1 * from.stride_1;
  }

  // The digits of a number of places, and how far on these are.
  __device__ i64 split(const Strided& from, N places, N* digit_1, N* digit_2, N* digit_3) const {
    *digit_3 = places % size_3;
    places /= size_3;
    *digit_2 = places % size_2;
    places /= size_2;
    *digit_1 = places % size_1;
    return *digit_3 * from.stride_3 + *digit_2 * from.stride_2 + *digit_1 * from.stride_1 +
           static_cast<i64>(places / size_1) * from.stride_0;
  }

  __device__ void go_on() {
    at += step;
    at_3 += step_3;
    if (at_3 >= size_3) at_3 -= size_3, at += carry_3, ++at_2;
    at_2 += step_2;
    if (at_2 >= size_2) at_2 -= size_2, at += carry_2, ++at_1;
    at_1 += step_1;
    if (at_1 >= size_1) at_1 -= size_1, at += carry_1;
  }
};

__device__ u64 value_of(u64 element) { return element; }
__device__ u64 value_of(ulonglong2 element) { return element.x + element.y; }

template <typename T, typename N>
__device__ u64 sum_of_type(const char* base, N count, const Strided& from) {
  constexpr unsigned PER_WORD = sizeof(T) < 8 ? 8 / sizeof(T) : 1;
  constexpr int GROUP = 8;  // read together
  const T* elements = reinterpret_cast<const T*>(base);
  const N step = gridDim.x * blockDim.x, whole = count - count % PER_WORD;
  N each = blockIdx.x * blockDim.x + threadIdx.x;
  Walk<N> walk(from, each, step);
  u64 mine = 0;
  auto add = [&](T element) {
    mine += value_of(element) << 8 * sizeof(T) % 64 * (each % PER_WORD);
    each += step;
  };
  while (each + (GROUP - 1) * step < whole) {
    T group[GROUP];
#pragma unroll
    for (int at = 0; at < GROUP; ++at, walk.go_on()) group[at] = elements[walk.at];
#pragma unroll
    for (int at = 0; at < GROUP; ++at) add(group[at]);
  }
  for (; each < whole; walk.go_on()) add(elements[walk.at]);
  for (; each < count; each += step, walk.go_on())  // no whole word: its bytes
    for (u64 value = value_of(elements[walk.at]); value; value >>= 8) mine += value & 0xFF;
  return mine;
}

template <typename N>
__device__ u64 sum_of_size(const char* base, int size, N count, const Strided& from) {
  switch (size) {
    case 1: return sum_of_type<unsigned char, N>(base, count, from);
    case 2: return sum_of_type<unsigned short, N>(base, count, from);
    case 4: return sum_of_type<unsigned, N>(base, count, from);
    case 8: return sum_of_type<u64, N>(base, count, from);
    default: return sum_of_type<ulonglong2, N>(base, count, from);
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
  for (u64 at = first; at < rest_bytes; at += step) mine += rest[at];
  add_up(mine, total);
}

// The same of elements of 1, 2, 4, 8 or 16 bytes that lie with gaps, or not at a word: what an
// element adds to the word that it would be part of. Each lies at a multiple of its size. Slowest
// dimension first, strides in elements.
extern "C" __global__ void digest_strided(const char* base, int size, u64 count, i64 size_1,
                                          i64 size_2, i64 size_3, i64 stride_0, i64 stride_1,
                                          i64 stride_2, i64 stride_3, u64* total) {
  const Strided from{size_1, size_2, size_3, stride_0, stride_1, stride_2, stride_3};
  u64 mine = count >> 31 ? sum_of_size<u64>(base, size, count, from)
                         : sum_of_size<unsigned>(base, size, count, from);
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
