"""A small tree of headers in the manner of CuTe's, written for tests; nothing of it compiles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

TEXTS: Mapping[str, str] = {
    "include/cute/tensor.hpp": "#pragma once\n#include <cute/layout.hpp>\n",
    "include/cute/layout.hpp": """#pragma once
namespace cute {
// Repeats a block until it has a shape; see warp_wait<99>() for nothing.
template <class Block, class Target>
auto
tile_to_shape(Block const& block, Target const& target)
{
  CUTE_STATIC_ASSERT_V(rank(block) <= rank(target), "Rank of block must be <= rank of target.");
  if constexpr (is_static<Target>::value) {
    CUTE_STATIC_ASSERT_V(evenly_divides(target, block),
                         "block shape does not divide the target shape.");
  }
  return block;
}
} // end namespace cute
""",
    "include/cute/arch/mma_sm90_toy.hpp": """#pragma once
namespace cute {
template <int N>
CUTE_HOST_DEVICE
void
warp_wait()
{
  static_assert(N >= 0 && N <= 7, "warp_wait: N must be in range [0, 7]");
}

template <class T, int Bits = 128>
struct SM80_TOY_COPY
{
  static_assert(sizeof(T) == 4 || sizeof(T) == 16, "a copy has 4 or 16 bytes");
  static_assert(Bits % 8 == 0);
#if defined(TOY)
  static_assert(sizeof(T) == 16, "only here");
#endif
  static void copy(T const& from, T& to) {}
};

template <int M, int N>
struct SM100_TOY_MMA
{
  static_assert((N % 8 == 0) && (8 <= N) && (N <= 256), "N is a multiple of 8 up to 256");
};
template <int N>
struct SM100_TOY_MMA<64, N>
{
  static_assert(N == 8, "of a specialisation");
};
} // namespace cute
""",
    "include/cute/atom/traits_sm90_toy.hpp": """#pragma once
namespace cute {
namespace GMMA {
template <class smem_flag>
using Layout_K_SW128_Atom_Bits = Composed<Swizzle<3,4,3>, smem_flag,
    Layout<Shape<_8,_1024>,Stride<_1024,_1>>>;
template <class smem_flag>
using Layout_MN_SW128_Atom_Bits = Composed<Swizzle<3,4,3>, smem_flag,
    Layout<Shape<_1024,_8>,Stride<_1,_1024>>>;
}
template <GMMA::Major a, GMMA::Major b>
using SM90_64x8x16_F32F16F16_SS = GMMA::Toy<8, a, b>;
template <GMMA::Major a, GMMA::Major b>
using SM90_64x16x16_F32F16F16_SS = GMMA::Toy<16, a, b>;
template <GMMA::Major a, GMMA::Major b>
using SM90_64x24x16_F32F16F16_SS = GMMA::Toy<24, a, b>;
template <GMMA::Major a, GMMA::Major b>
using SM90_64x32x16_F32F16F16_SS = GMMA::Toy<32, a, b>;
struct SM80_16x8x16_F32F16F16F32_TN {};
} // namespace cute
""",
    "include/cute/atom/copy_tma_sm90.hpp": """#pragma once
namespace cute {
template <class T>
auto make_tma_desc(T box)
{
  assert(box[0] <= (uint32_t(1) << 8));  // Size must be max 2^8 = 256
  assert(smem_box[1] <= 256);            // Box must be max 256
}
} // namespace cute
""",
    "include/cutlass/version.h": (
        "#define CUTLASS_MAJOR 9\n#define CUTLASS_MINOR 1\n#define CUTLASS_PATCH 2\n"
    ),
    "examples/toy/gemm.cu": (
        "// A gemm that calls warp_wait and tile_to_shape.\nvoid gemm() { cute::warp_wait<0>(); }\n"
    ),
    "media/docs/layout.md": "# Layouts\n\nA swizzle keeps banks apart.\n",
}
"""By path from the root."""


def write_toy(root: Path) -> Path:
    """Write the tree into a folder, and return that."""
    for name, text in TEXTS.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
