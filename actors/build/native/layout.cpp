// Prints layout.h: the sizes and offsets that the light headers share with torch's own. Ends with
// an error where torch's classes are not laid out in the way that those headers read them.
#include <ATen/core/IListRef.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/SizesAndStrides.h>
#include <torch/csrc/python_headers.h>

#include "region.h"

#include <cstdio>
#include <cstring>

namespace {

// TensorImpl's fields are protected.
struct Open : c10::TensorImpl {
  static constexpr auto numel = &Open::numel_;
  static constexpr auto shape = &Open::sizes_and_strides_;
  static void set_policy(c10::TensorImpl& impl, uint8_t value) {
    static_cast<Open&>(impl).sizes_strides_policy_ = value;
  }
};

[[noreturn]] void stop(const char* what) {
  std::fprintf(stderr, "torch's %s is not laid out as expected\n", what);
  std::exit(1);
}

template <typename T>
size_t offset(const c10::TensorImpl& impl, T c10::TensorImpl::*member) {
  return static_cast<size_t>(
      reinterpret_cast<const char*>(&(impl.*member)) - reinterpret_cast<const char*>(&impl));
}

struct Bits {
  size_t offset;
  unsigned mask;
};
// A bit field has no address: the byte that changes with it is looked for.
Bits policy_bits(c10::TensorImpl& impl) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&impl);
  unsigned char before[sizeof(c10::TensorImpl)];
  Bits found{0, 0};
  Open::set_policy(impl, 0);
  std::memcpy(before, bytes, sizeof(before));
  Open::set_policy(impl, 3);
  for (size_t i = 0; i < sizeof(before); ++i) {
    if (before[i] == bytes[i]) continue;
    if (found.mask != 0) stop("sizes_strides_policy_");
    found = {i, static_cast<unsigned>(before[i] ^ bytes[i])};
  }
  Open::set_policy(impl, 0);
  if (found.mask == 0) stop("sizes_strides_policy_");
  return found;
}

void check_shape(size_t dims, size_t inline_dims) {
  c10::impl::SizesAndStrides shape;
  shape.resize(dims);
  const auto* words = reinterpret_cast<const int64_t*>(&shape);
  if (static_cast<size_t>(words[0]) != dims) stop("SizesAndStrides");
  const int64_t* sizes = dims <= inline_dims ? words + 1
                                             : *reinterpret_cast<const int64_t* const*>(words + 1);
  if (shape.sizes_data() != sizes) stop("SizesAndStrides");
  if (dims > 0 && shape.strides_data() != sizes + (dims <= inline_dims ? inline_dims : dims)) {
    stop("SizesAndStrides");
  }
}

}  // namespace

int main() {
  constexpr size_t inline_dims = C10_SIZES_AND_STRIDES_MAX_INLINE_SIZE;
  for (size_t dims = 0; dims < 3 * inline_dims; ++dims) check_shape(dims, inline_dims);
  auto impl = c10::make_intrusive<c10::TensorImpl>(
      c10::DispatchKeySet(c10::DispatchKey::CPU), caffe2::TypeMeta::Make<float>(), c10::Device("cpu"));
  const size_t shape = offset(*impl, static_cast<c10::impl::SizesAndStrides c10::TensorImpl::*>(Open::shape));
  const Bits policy = policy_bits(*impl);
  static_assert(sizeof(at::Tensor) == sizeof(void*) && sizeof(c10::SymInt) == 8);
  static_assert(std::is_same_v<c10::string_view, std::string_view>);
  static_assert(static_cast<int>(c10::DeviceType::CUDA) == 1);
  static_assert(static_cast<int>(c10::DeviceType::Meta) == 14);
  static_assert(static_cast<int>(c10::Layout::Jagged) == 7);
  static_assert(static_cast<int>(c10::MemoryFormat::ChannelsLast3d) == 3);
  for (int i = 0; i < static_cast<int>(c10::ScalarType::Undefined); ++i) {
    const auto type = static_cast<c10::ScalarType>(i);
    if (c10::scalarTypeToTypeMeta(type).toScalarType() != type) stop("TypeMeta");
  }

  std::printf("#pragma once\n");
  std::printf("#define KOPT_SCALAR_TYPES(_)");
  for (int i = 0; i < static_cast<int>(c10::ScalarType::Undefined); ++i) {
    std::printf(" _(%s)", c10::toString(static_cast<c10::ScalarType>(i)));
  }
  std::printf("\n#define KOPT_INLINE_DIMS %zu\n", inline_dims);
  std::printf("#define KOPT_OFFSET_DIM %zu\n", shape);
  std::printf("#define KOPT_OFFSET_SHAPE %zu\n", shape + sizeof(int64_t));
  std::printf("#define KOPT_OFFSET_NUMEL %zu\n", offset(*impl, static_cast<int64_t c10::TensorImpl::*>(Open::numel)));
  std::printf("#define KOPT_OFFSET_POLICY %zu\n", policy.offset);
  std::printf("#define KOPT_POLICY_MASK %u\n", policy.mask);
  std::printf("#define KOPT_SIZEOF_SCALAR %zu\n", sizeof(c10::Scalar));
  std::printf("#define KOPT_ALIGNOF_SCALAR %zu\n", alignof(c10::Scalar));
  std::printf("#define KOPT_SIZEOF_DEVICE %zu\n", sizeof(c10::Device));
  std::printf("#define KOPT_SIZEOF_STREAM %zu\n", sizeof(c10::Stream));
  std::printf("#define KOPT_SIZEOF_OPTIONAL_INTS %zu\n", sizeof(at::OptionalIntArrayRef));
  std::printf("#define KOPT_SIZEOF_LIST_REF %zu\n", sizeof(at::ITensorListRef));
  std::printf("#define KOPT_UNBOXED %d\n", static_cast<int>(c10::IListRefTag::Unboxed));
  std::printf("#define KOPT_SIZEOF_BELOW_AUTOGRAD %zu\n", sizeof(at::AutoDispatchBelowADInplaceOrView));
  std::printf("#define KOPT_SIZEOF_NO_GRAD %zu\n", sizeof(at::NoGradGuard));
  std::printf("#define KOPT_SIZEOF_REGION %zu\n", sizeof(KoptRegion));
  std::printf("#define KOPT_SIZEOF_MODULE_DEF %zu\n", sizeof(PyModuleDef));
  return 0;
}
