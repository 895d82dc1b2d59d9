// The small types of c10 and at that kernels name: dtypes, devices, layouts, ranges, scalars.
// Names and memory layout are torch's own, since operators are called by their mangled names; the
// layout is compared with torch's headers when the toolchain is set up (layout.cpp).
#pragma once

#include <math.h>
#include <stdlib.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <c10/macros/Macros.h>
#if __has_include(<c10/util/Optional.h>)
#include <c10/util/Optional.h>
#endif
#include <kopt_light/bridge.h>
#include <kopt_light/layout.h>
#include <kopt_light/tailored.h>
#if KOPT_HALF
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#endif
#if KOPT_COMPLEX
#include <c10/util/complex.h>
#endif

namespace at {
class Tensor;
class TensorBase;
}  // namespace at
namespace torch::autograd {
struct Node;
}

namespace c10 {

class DispatchKeySet;
template <typename T>
class IListRef;
template <typename T>
class List;
using string_view = std::string_view;

enum class ScalarType : int8_t {
#define KOPT_ENTRY(name) name,
  KOPT_SCALAR_TYPES(KOPT_ENTRY)
#undef KOPT_ENTRY
      Undefined,
  NumOptions
};
#define KOPT_ENTRY(name) constexpr ScalarType k##name = ScalarType::name;
KOPT_SCALAR_TYPES(KOPT_ENTRY)
#undef KOPT_ENTRY

template <typename T>
struct CppTypeToScalarType;
namespace impl {
template <ScalarType N>
struct ScalarTypeToCPPType;
template <ScalarType N>
using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<N>::type;
}  // namespace impl
#define KOPT_PAIR(cpp_type, name)                                                        \
  template <>                                                                            \
  struct CppTypeToScalarType<cpp_type> : std::integral_constant<ScalarType, ScalarType::name> {}; \
  namespace impl {                                                                       \
  template <>                                                                            \
  struct ScalarTypeToCPPType<ScalarType::name> {                                         \
    using type = cpp_type;                                                               \
    static type t;                                                                       \
  };                                                                                     \
  }
KOPT_PAIR(uint8_t, Byte)
KOPT_PAIR(int8_t, Char)
KOPT_PAIR(int16_t, Short)
KOPT_PAIR(int, Int)
KOPT_PAIR(int64_t, Long)
KOPT_PAIR(float, Float)
KOPT_PAIR(double, Double)
KOPT_PAIR(bool, Bool)
KOPT_PAIR(uint16_t, UInt16)
KOPT_PAIR(uint32_t, UInt32)
KOPT_PAIR(uint64_t, UInt64)
#if KOPT_HALF
KOPT_PAIR(c10::Half, Half)
KOPT_PAIR(c10::BFloat16, BFloat16)
#endif
#if KOPT_COMPLEX
KOPT_PAIR(c10::complex<float>, ComplexFloat)
KOPT_PAIR(c10::complex<double>, ComplexDouble)
#endif
#undef KOPT_PAIR

KOPT_INLINE const char* toString(ScalarType type) { return kopt_dtype_name(static_cast<int>(type)); }
KOPT_INLINE size_t elementSize(ScalarType type) {
  return static_cast<size_t>(kopt_dtype_size(static_cast<int>(type)));
}
KOPT_INLINE bool isIntegralType(ScalarType type, bool include_bool) {
  return type == kByte || type == kChar || type == kShort || type == kInt || type == kLong ||
      type == ScalarType::UInt16 || type == ScalarType::UInt32 || type == ScalarType::UInt64 ||
      (include_bool && type == kBool);
}
KOPT_INLINE bool isReducedFloatingType(ScalarType type) {
  return type == kHalf || type == kBFloat16 || type == ScalarType::Float8_e5m2 ||
      type == ScalarType::Float8_e4m3fn || type == ScalarType::Float8_e5m2fnuz ||
      type == ScalarType::Float8_e4m3fnuz || type == ScalarType::Float8_e8m0fnu;
}
KOPT_INLINE bool isComplexType(ScalarType type) {
  return type == ScalarType::ComplexHalf || type == kComplexFloat || type == kComplexDouble;
}

using DeviceIndex = int8_t;
enum class DeviceType : int8_t {
  CPU = 0,
  CUDA = 1,
  HIP = 6,
  Vulkan = 10,
  Metal = 11,
  XPU = 12,
  MPS = 13,
  Meta = 14,
};
constexpr DeviceType kCPU = DeviceType::CPU;
constexpr DeviceType kCUDA = DeviceType::CUDA;
constexpr DeviceType kMeta = DeviceType::Meta;

enum class Layout : int8_t {
  Strided, Sparse, SparseCsr, Mkldnn, SparseCsc, SparseBsr, SparseBsc, Jagged, NumOptions
};
constexpr auto kStrided = Layout::Strided;
constexpr auto kSparse = Layout::Sparse;

enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d, NumOptions };

struct Device final {
  using Type = DeviceType;
  KOPT_INLINE Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  KOPT_INLINE Device(const std::string& text) : Device(DeviceType::CPU) {
    int type = 0, index = -1;
    kopt_parse_device(text.data(), text.size(), &type, &index);
    type_ = static_cast<DeviceType>(type);
    index_ = static_cast<DeviceIndex>(index);
  }
  KOPT_INLINE bool operator==(const Device& other) const noexcept {
    return type_ == other.type_ && index_ == other.index_;
  }
  KOPT_INLINE bool operator!=(const Device& other) const noexcept { return !(*this == other); }
  KOPT_INLINE void set_index(DeviceIndex index) { index_ = index; }
  KOPT_INLINE DeviceType type() const noexcept { return type_; }
  KOPT_INLINE DeviceIndex index() const noexcept { return index_; }
  KOPT_INLINE bool has_index() const noexcept { return index_ != -1; }
  KOPT_INLINE bool is_cuda() const noexcept { return type_ == DeviceType::CUDA; }
  KOPT_INLINE bool is_cpu() const noexcept { return type_ == DeviceType::CPU; }
  KOPT_INLINE bool is_meta() const noexcept { return type_ == DeviceType::Meta; }
  KOPT_INLINE std::string str() const {
    std::string text;
    kopt_put_device(&text, static_cast<int>(type_), index_);
    return text;
  }

 private:
  DeviceType type_;
  DeviceIndex index_ = -1;
};

using StreamId = int64_t;
class Stream final {
 public:
  KOPT_INLINE Device device() const noexcept { return device_; }
  KOPT_INLINE DeviceIndex device_index() const noexcept { return device_.index(); }
  KOPT_INLINE StreamId id() const noexcept { return id_; }

 private:
  Device device_;
  StreamId id_;
};

// -- errors -----------------------------------------------------------------------------------

template <typename T>
class ArrayRef;

}  // namespace c10

namespace caffe2 {
class TypeMeta final {
 public:
  KOPT_INLINE TypeMeta() noexcept : index_(static_cast<uint16_t>(c10::ScalarType::Undefined)) {}
  KOPT_INLINE static TypeMeta fromScalarType(c10::ScalarType type) { return TypeMeta(type); }
  template <typename T>
  KOPT_INLINE static TypeMeta Make() {
    return TypeMeta(c10::CppTypeToScalarType<T>::value);
  }
  template <typename T>
  KOPT_INLINE bool Match() const noexcept {
    return *this == Make<T>();
  }
  KOPT_INLINE c10::ScalarType toScalarType() const { return static_cast<c10::ScalarType>(index_); }
  KOPT_INLINE bool isScalarType(c10::ScalarType type) const { return toScalarType() == type; }
  KOPT_INLINE size_t itemsize() const { return c10::elementSize(toScalarType()); }
  KOPT_INLINE friend bool operator==(const TypeMeta a, const TypeMeta b) noexcept {
    return a.index_ == b.index_;
  }

 private:
  KOPT_INLINE explicit TypeMeta(c10::ScalarType type) : index_(static_cast<uint16_t>(type)) {}
  uint16_t index_;
};
KOPT_INLINE bool operator!=(const TypeMeta a, const TypeMeta b) noexcept { return !(a == b); }
}  // namespace caffe2

namespace c10 {
KOPT_INLINE caffe2::TypeMeta scalarTypeToTypeMeta(ScalarType type) {
  return caffe2::TypeMeta::fromScalarType(type);
}
KOPT_INLINE ScalarType typeMetaToScalarType(caffe2::TypeMeta type) { return type.toScalarType(); }
KOPT_INLINE std::optional<ScalarType> optTypeMetaToScalarType(std::optional<caffe2::TypeMeta> type) {
  if (!type.has_value()) return std::nullopt;
  return type->toScalarType();
}
KOPT_INLINE bool operator==(ScalarType a, caffe2::TypeMeta b) { return b.isScalarType(a); }
KOPT_INLINE bool operator==(caffe2::TypeMeta a, ScalarType b) { return a.isScalarType(b); }
KOPT_INLINE bool operator!=(ScalarType a, caffe2::TypeMeta b) { return !(a == b); }
KOPT_INLINE bool operator!=(caffe2::TypeMeta a, ScalarType b) { return !(a == b); }
}  // namespace c10
namespace caffe2 {
using c10::operator==;
using c10::operator!=;
}  // namespace caffe2

#include <kopt_light/check.h>

namespace c10 {

// -- ranges -----------------------------------------------------------------------------------

template <typename T>
class ArrayRef final {
 public:
  using iterator = const T*;
  using const_iterator = const T*;
  using size_type = size_t;
  using value_type = T;

  KOPT_INLINE constexpr ArrayRef() : Data(nullptr), Length(0) {}
  KOPT_INLINE constexpr ArrayRef(const T& one) : Data(&one), Length(1) {}
  KOPT_INLINE constexpr ArrayRef(const T* data, size_t length) : Data(data), Length(length) {}
  KOPT_INLINE constexpr ArrayRef(const T* begin, const T* end)
      : Data(begin), Length(static_cast<size_t>(end - begin)) {}
  template <
      typename Container,
      typename U = decltype(std::declval<Container>().data()),
      typename = std::enable_if_t<std::is_same_v<U, T*> || std::is_same_v<U, T const*>>>
  KOPT_INLINE ArrayRef(const Container& container)
      : Data(container.data()), Length(container.size()) {}
  template <typename A>
  KOPT_INLINE ArrayRef(const std::vector<T, A>& vector)
      : Data(vector.data()), Length(vector.size()) {}
  template <size_t N>
  KOPT_INLINE constexpr ArrayRef(const std::array<T, N>& array) : Data(array.data()), Length(N) {}
  template <size_t N>
  KOPT_INLINE constexpr ArrayRef(const T (&array)[N]) : Data(array), Length(N) {}
  KOPT_INLINE constexpr ArrayRef(const std::initializer_list<T>& list)
      : Data(list.size() == 0 ? nullptr : std::begin(list)), Length(list.size()) {}

  KOPT_INLINE constexpr iterator begin() const { return Data; }
  KOPT_INLINE constexpr iterator end() const { return Data + Length; }
  KOPT_INLINE constexpr const_iterator cbegin() const { return Data; }
  KOPT_INLINE constexpr const_iterator cend() const { return Data + Length; }
  KOPT_INLINE constexpr bool empty() const { return Length == 0; }
  KOPT_INLINE constexpr const T* data() const { return Data; }
  KOPT_INLINE constexpr size_t size() const { return Length; }
  KOPT_INLINE const T& front() const {
    TORCH_CHECK(!empty(), "ArrayRef: attempted to access front() of empty list");
    return Data[0];
  }
  KOPT_INLINE const T& back() const {
    TORCH_CHECK(!empty(), "ArrayRef: attempted to access back() of empty list");
    return Data[Length - 1];
  }
  KOPT_INLINE constexpr bool equals(ArrayRef other) const {
    return Length == other.Length && std::equal(begin(), end(), other.begin());
  }
  KOPT_INLINE ArrayRef<T> slice(size_t n, size_t m) const {
    TORCH_CHECK(
        n + m <= size(), "ArrayRef: invalid slice, N = ", n, "; M = ", m, "; size = ", size());
    return ArrayRef<T>(data() + n, m);
  }
  KOPT_INLINE ArrayRef<T> slice(size_t n) const {
    TORCH_CHECK(n <= size(), "ArrayRef: invalid slice, N = ", n, "; size = ", size());
    return slice(n, size() - n);
  }
  KOPT_INLINE constexpr const T& operator[](size_t index) const { return Data[index]; }
  KOPT_INLINE const T& at(size_t index) const {
    TORCH_CHECK(
        index < Length, "ArrayRef: invalid index Index = ", index, "; Length = ", Length);
    return Data[index];
  }
  KOPT_INLINE std::vector<T> vec() const { return std::vector<T>(Data, Data + Length); }

 private:
  const T* Data;
  size_type Length;
};
template <typename T>
KOPT_INLINE bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  return a.equals(b);
}
template <typename T>
KOPT_INLINE bool operator!=(ArrayRef<T> a, ArrayRef<T> b) {
  return !a.equals(b);
}
template <typename T>
KOPT_INLINE bool operator==(const std::vector<T>& a, ArrayRef<T> b) {
  return ArrayRef<T>(a).equals(b);
}
template <typename T>
KOPT_INLINE bool operator!=(const std::vector<T>& a, ArrayRef<T> b) {
  return !ArrayRef<T>(a).equals(b);
}
template <typename T>
KOPT_INLINE bool operator==(ArrayRef<T> a, const std::vector<T>& b) {
  return a.equals(ArrayRef<T>(b));
}
template <typename T>
KOPT_INLINE bool operator!=(ArrayRef<T> a, const std::vector<T>& b) {
  return !a.equals(ArrayRef<T>(b));
}
using IntArrayRef = ArrayRef<int64_t>;
template <typename T>
using HeaderOnlyArrayRef = ArrayRef<T>;
using IntHeaderOnlyArrayRef = IntArrayRef;

}  // namespace c10

namespace kopt_light {
KOPT_INLINE void put(std::string& text, c10::ArrayRef<int64_t> value) {
  kopt_put_ints(&text, value.data(), value.size());
}
}  // namespace kopt_light

#include <c10/util/OptionalArrayRef.h>

namespace c10 {

// A size that may stand for an unknown one; in eager mode it never does.
class SymInt {
 public:
  KOPT_INLINE SymInt(int64_t value) : data_(value) {
    TORCH_CHECK(value >= -(int64_t(1) << 62), "SymInt: ", value, " cannot be represented");
  }
  KOPT_INLINE SymInt() : data_(0) {}
  KOPT_INLINE SymInt(const SymInt& other) : data_(other.data_) {}
  KOPT_INLINE SymInt(SymInt&& other) noexcept : data_(other.data_) { other.data_ = 0; }
  KOPT_INLINE SymInt& operator=(const SymInt& other) {
    data_ = other.data_;
    return *this;
  }
  KOPT_INLINE ~SymInt() {}

 private:
  int64_t data_;
};
using SymIntArrayRef = ArrayRef<SymInt>;
KOPT_INLINE SymIntArrayRef fromIntArrayRefSlow(IntArrayRef array) {
  for (int64_t value : array) {
    TORCH_CHECK(
        value >= -(int64_t(1) << 62),
        "IntArrayRef contains an int that cannot be represented as a SymInt: ",
        value);
  }
  return SymIntArrayRef(reinterpret_cast<const SymInt*>(array.data()), array.size());
}

// -- scalars ----------------------------------------------------------------------------------

class Scalar {
 public:
  KOPT_INLINE Scalar() : Scalar(int64_t(0)) {}
  KOPT_INLINE Scalar(const Scalar& other) : tag(other.tag) { v = other.v; }
  KOPT_INLINE Scalar(Scalar&& other) noexcept : tag(other.tag) { v = other.v; }
  KOPT_INLINE Scalar& operator=(const Scalar& other) {
    tag = other.tag;
    v = other.v;
    return *this;
  }
  KOPT_INLINE ~Scalar() {}
#define KOPT_FROM(type, kind, member)                        \
  KOPT_INLINE Scalar(type value) : tag(Tag::kind) {          \
    v.member = static_cast<decltype(v.member)>(value);       \
  }
  KOPT_FROM(uint8_t, HAS_i, i)
  KOPT_FROM(int8_t, HAS_i, i)
  KOPT_FROM(int16_t, HAS_i, i)
  KOPT_FROM(int, HAS_i, i)
  KOPT_FROM(int64_t, HAS_i, i)
  KOPT_FROM(long long, HAS_i, i)
  KOPT_FROM(uint16_t, HAS_i, i)
  KOPT_FROM(uint32_t, HAS_i, i)
  KOPT_FROM(float, HAS_d, d)
  KOPT_FROM(double, HAS_d, d)
#if KOPT_HALF
  KOPT_FROM(c10::Half, HAS_d, d)
  KOPT_FROM(c10::BFloat16, HAS_d, d)
#endif
#undef KOPT_FROM
  KOPT_INLINE Scalar(uint64_t value) : tag(Tag::HAS_u) {
    v.u = value;
    if (value <= static_cast<uint64_t>(INT64_MAX)) {
      tag = Tag::HAS_i;
      v.i = static_cast<int64_t>(value);
    }
  }
  template <typename T, typename std::enable_if_t<std::is_same_v<T, bool>, bool>* = nullptr>
  KOPT_INLINE Scalar(T value) : tag(Tag::HAS_b) {
    v.i = value ? 1 : 0;
  }

  template <typename T>
  KOPT_INLINE T to() const {
    T value;
    kopt_scalar_to(this, static_cast<int>(CppTypeToScalarType<T>::value), &value);
    return value;
  }
  KOPT_INLINE float toFloat() const { return to<float>(); }
  KOPT_INLINE double toDouble() const { return to<double>(); }
  KOPT_INLINE int toInt() const { return to<int>(); }
  KOPT_INLINE int64_t toLong() const { return to<int64_t>(); }
  KOPT_INLINE bool toBool() const { return to<bool>(); }
  KOPT_INLINE ScalarType type() const { return static_cast<ScalarType>(kopt_scalar_type(this)); }
  KOPT_INLINE bool isFloatingPoint() const { return tag == Tag::HAS_d; }
  KOPT_INLINE bool isIntegral(bool include_bool) const {
    return tag == Tag::HAS_i || tag == Tag::HAS_u || (include_bool && tag == Tag::HAS_b);
  }
  KOPT_INLINE bool isBoolean() const { return tag == Tag::HAS_b; }
  KOPT_INLINE bool isComplex() const { return tag == Tag::HAS_z; }

 private:
  enum class Tag { HAS_d, HAS_i, HAS_u, HAS_z, HAS_b, HAS_sd, HAS_si, HAS_sb };
  Tag tag;
  union alignas(16) Value {
    double d;
    int64_t i;
    uint64_t u;
    double z[2];
    void* p;
    KOPT_INLINE Value() : z{0, 0} {}
  } v;
};

}  // namespace c10

static_assert(sizeof(c10::Scalar) == KOPT_SIZEOF_SCALAR && alignof(c10::Scalar) == KOPT_ALIGNOF_SCALAR);
static_assert(sizeof(c10::Device) == KOPT_SIZEOF_DEVICE);
static_assert(sizeof(c10::Stream) == KOPT_SIZEOF_STREAM);
static_assert(sizeof(c10::SymInt) == 8 && sizeof(c10::IntArrayRef) == 16);
static_assert(sizeof(c10::OptionalArrayRef<int64_t>) == KOPT_SIZEOF_OPTIONAL_INTS);

namespace at {
using namespace c10;
using caffe2::TypeMeta;
}  // namespace at
namespace torch::headeronly {
using c10::HeaderOnlyArrayRef;
using c10::IntHeaderOnlyArrayRef;
using c10::ScalarType;
using c10::toString;
namespace impl {
using c10::impl::ScalarTypeToCPPTypeT;
}
}  // namespace torch::headeronly
