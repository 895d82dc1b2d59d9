// at::Tensor with the members of at::TensorBase, the operators, and of the hundreds of generated
// methods those that the source names (tailored_*.h, written for each source from torch's own text).
#pragma once

#include <kopt_light/values.h>

#include <ATen/core/Reduction.h>
#if KOPT_ACCESSOR
#include <ATen/core/TensorAccessor.h>
#endif

namespace c10 {

struct TensorOptions {
  KOPT_INLINE TensorOptions() {}
  KOPT_INLINE TensorOptions(Layout layout) { set_layout(layout); }
  template <typename T, typename = std::enable_if_t<std::is_same_v<std::decay_t<T>, Device>>>
  KOPT_INLINE TensorOptions(T&& device) {
    set_device(std::forward<T>(device));
  }
  template <
      typename... Args,
      typename = std::enable_if_t<std::is_constructible_v<Device, Args&&...>>>
  KOPT_INLINE TensorOptions(Args&&... args) : TensorOptions(Device(std::forward<Args>(args)...)) {}
  KOPT_INLINE TensorOptions(caffe2::TypeMeta dtype) { set_dtype(dtype); }
  KOPT_INLINE TensorOptions(ScalarType dtype) { set_dtype(scalarTypeToTypeMeta(dtype)); }
  KOPT_INLINE TensorOptions(MemoryFormat format) { set_memory_format(format); }

#define KOPT_SETTER(name, type)                                                    \
  [[nodiscard]] KOPT_INLINE TensorOptions name(std::optional<type> value) const noexcept { \
    TensorOptions changed = *this;                                                 \
    changed.set_##name(value);                                                     \
    return changed;                                                                \
  }                                                                                \
  KOPT_INLINE bool has_##name() const noexcept { return name##_.has_value(); }     \
  KOPT_INLINE std::optional<type> name##_opt() const noexcept { return name##_; }
  KOPT_SETTER(device, Device)
  KOPT_SETTER(dtype, caffe2::TypeMeta)
  KOPT_SETTER(layout, Layout)
  KOPT_SETTER(requires_grad, bool)
  KOPT_SETTER(pinned_memory, bool)
  KOPT_SETTER(memory_format, MemoryFormat)
#undef KOPT_SETTER
  template <typename... Args>
  [[nodiscard]] KOPT_INLINE TensorOptions device(Args&&... args) const noexcept {
    return device(std::optional<Device>(std::in_place, std::forward<Args>(args)...));
  }
  [[nodiscard]] KOPT_INLINE TensorOptions device_index(DeviceIndex index) const noexcept {
    return device(DeviceType::CUDA, index);
  }
  [[nodiscard]] KOPT_INLINE TensorOptions dtype(std::optional<ScalarType> value) const noexcept {
    return dtype(
        value ? std::optional<caffe2::TypeMeta>(scalarTypeToTypeMeta(*value)) : std::nullopt);
  }
  template <typename T>
  KOPT_INLINE TensorOptions& dtype() {
    dtype_ = caffe2::TypeMeta::Make<T>();
    return *this;
  }
  KOPT_INLINE Device device() const noexcept { return device_.value_or(Device(kCPU)); }
  KOPT_INLINE DeviceIndex device_index() const noexcept { return device().index(); }
  KOPT_INLINE caffe2::TypeMeta dtype() const noexcept {
    return dtype_.value_or(scalarTypeToTypeMeta(static_cast<ScalarType>(kopt_default_dtype())));
  }
  KOPT_INLINE Layout layout() const noexcept { return layout_.value_or(kStrided); }
  KOPT_INLINE bool requires_grad() const noexcept { return requires_grad_.value_or(false); }
  KOPT_INLINE bool pinned_memory() const noexcept { return pinned_memory_.value_or(false); }

 private:
  KOPT_INLINE void set_device(std::optional<Device> value) { device_ = value; }
  KOPT_INLINE void set_dtype(std::optional<caffe2::TypeMeta> value) { dtype_ = value; }
  KOPT_INLINE void set_layout(std::optional<Layout> value) { layout_ = value; }
  KOPT_INLINE void set_requires_grad(std::optional<bool> value) { requires_grad_ = value; }
  KOPT_INLINE void set_pinned_memory(std::optional<bool> value) { pinned_memory_ = value; }
  KOPT_INLINE void set_memory_format(std::optional<MemoryFormat> value) { memory_format_ = value; }

  std::optional<Device> device_;
  std::optional<caffe2::TypeMeta> dtype_;
  std::optional<Layout> layout_;
  std::optional<bool> requires_grad_;
  std::optional<bool> pinned_memory_;
  std::optional<MemoryFormat> memory_format_;
};
KOPT_INLINE TensorOptions dtype(caffe2::TypeMeta value) { return TensorOptions().dtype(value); }
KOPT_INLINE TensorOptions dtype(ScalarType value) { return TensorOptions().dtype(value); }
template <typename T>
KOPT_INLINE TensorOptions dtype() {
  return dtype(caffe2::TypeMeta::Make<T>());
}
KOPT_INLINE TensorOptions layout(Layout value) { return TensorOptions().layout(value); }
KOPT_INLINE TensorOptions device(Device value) { return TensorOptions().device(value); }
KOPT_INLINE TensorOptions device_index(DeviceIndex value) {
  return TensorOptions().device_index(value);
}
KOPT_INLINE TensorOptions requires_grad(bool value = true) {
  return TensorOptions().requires_grad(value);
}
KOPT_INLINE TensorOptions memory_format(MemoryFormat value) {
  return TensorOptions().memory_format(value);
}

namespace impl {
KOPT_INLINE std::optional<MemoryFormat> check_tensor_options_and_extract_memory_format(
    const TensorOptions& options, std::optional<MemoryFormat> memory_format) {
  TORCH_CHECK(
      !options.requires_grad_opt().value_or(false),
      "Operators taking TensorOptions cannot take a TensorOptions with "
      "options.requires_grad set as true. This isn't implemented yet.");
  TORCH_CHECK(
      !(options.has_memory_format() && memory_format.has_value()),
      "Cannot set memory_format both in TensorOptions and explicit argument; please delete "
      "the redundant setter.");
  return memory_format.has_value() ? memory_format : options.memory_format_opt();
}
}  // namespace impl

KOPT_INLINE int64_t maybe_wrap_dim(int64_t dim, int64_t count, bool wrap_scalar = true) {
  if (count == 0 && wrap_scalar) count = 1;
  TORCH_CHECK_INDEX(
      -count <= dim && dim < count,
      "Dimension out of range (expected to be in range of [", -count, ", ", count - 1,
      "], but got ", dim, ")");
  return dim < 0 ? dim + count : dim;
}

// Named in signatures of operators, and never made here.
struct Storage {
  Storage() = delete;
};
class SymBool {
  SymBool() = delete;
};

}  // namespace c10

namespace at {

class Dimname {
  Dimname() = delete;
};
using DimnameList = ArrayRef<Dimname>;

// A random generator: none can be named here, so operators take their default.
struct Generator {
  Generator() = delete;
  KOPT_INLINE Generator(const Generator& other) : impl_(other.impl_) {}
  KOPT_INLINE ~Generator() {}

 private:
  void* impl_;
};

class TensorBase {
 public:
  KOPT_INLINE TensorBase() : impl_(kopt_undefined_impl) {}
  KOPT_INLINE TensorBase(const TensorBase& other) : impl_(other.impl_) { kopt_incref(impl_); }
  KOPT_INLINE TensorBase(TensorBase&& other) noexcept : impl_(other.impl_) {
    other.impl_ = kopt_undefined_impl;
  }
  KOPT_INLINE ~TensorBase() noexcept {
    if (impl_ != kopt_undefined_impl) kopt_decref(impl_);
  }
  KOPT_INLINE TensorBase& operator=(const TensorBase& other) & {
    void* before = impl_;
    kopt_incref(other.impl_);
    impl_ = other.impl_;
    kopt_decref(before);
    return *this;
  }
  KOPT_INLINE TensorBase& operator=(TensorBase&& other) & noexcept {
    void* before = impl_;
    if (this != &other) {
      impl_ = other.impl_;
      other.impl_ = kopt_undefined_impl;
      kopt_decref(before);
    }
    return *this;
  }

  // As in torch, what tensors of the usual kind have is read without a call.
  KOPT_INLINE int64_t dim() const {
    if (C10_UNLIKELY(is_custom())) return kopt_dim(impl_);
    return *field<int64_t>(KOPT_OFFSET_DIM);
  }
  KOPT_INLINE int64_t ndimension() const { return dim(); }
  KOPT_INLINE int64_t numel() const {
    if (C10_UNLIKELY(is_custom())) return kopt_numel(impl_);
    return *field<int64_t>(KOPT_OFFSET_NUMEL);
  }
  KOPT_INLINE IntArrayRef sizes() const {
    if (C10_UNLIKELY(is_custom())) {
      size_t count = 0;
      const int64_t* values = kopt_sizes(impl_, &count);
      return IntArrayRef(values, count);
    }
    const int64_t count = dim();
    return IntArrayRef(shape(count), static_cast<size_t>(count));
  }
  KOPT_INLINE IntArrayRef strides() const {
    if (C10_UNLIKELY(is_custom())) {
      size_t count = 0;
      const int64_t* values = kopt_strides(impl_, &count);
      return IntArrayRef(values, count);
    }
    const int64_t count = dim();
    return IntArrayRef(
        shape(count) + (count <= KOPT_INLINE_DIMS ? KOPT_INLINE_DIMS : count),
        static_cast<size_t>(count));
  }
  KOPT_INLINE int64_t size(int64_t index) const {
    const int64_t count = dim();
    if (C10_UNLIKELY(is_custom() || index < -count || index >= count)) {
      return kopt_size(impl_, index);
    }
    return shape(count)[index < 0 ? index + count : index];
  }
  KOPT_INLINE int64_t stride(int64_t index) const {
    const IntArrayRef all = strides();
    const int64_t count = static_cast<int64_t>(all.size());
    if (C10_UNLIKELY(index < -count || index >= count)) return kopt_stride(impl_, index);
    return all[static_cast<size_t>(index < 0 ? index + count : index)];
  }

  KOPT_INLINE int64_t storage_offset() const { return kopt_storage_offset(impl_); }
  KOPT_INLINE bool defined() const { return impl_ != kopt_undefined_impl; }
  KOPT_INLINE void reset() { *this = TensorBase(); }
  KOPT_INLINE bool is_same(const TensorBase& other) const noexcept { return impl_ == other.impl_; }
  KOPT_INLINE size_t use_count() const noexcept {
    return static_cast<size_t>(kopt_use_count(impl_));
  }
  KOPT_INLINE bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    return kopt_is_contiguous(impl_, static_cast<int>(format));
  }
  KOPT_INLINE bool is_non_overlapping_and_dense() const { return kopt_is_dense(impl_); }
  KOPT_INLINE MemoryFormat suggest_memory_format() const {
    return static_cast<MemoryFormat>(kopt_suggest_memory_format(this));
  }
  KOPT_INLINE size_t nbytes() const { return kopt_nbytes(this); }
  KOPT_INLINE size_t itemsize() const { return static_cast<size_t>(kopt_itemsize(impl_)); }
  KOPT_INLINE int64_t element_size() const { return kopt_itemsize(impl_); }
  KOPT_INLINE ScalarType scalar_type() const { return static_cast<ScalarType>(kopt_dtype(impl_)); }
  KOPT_INLINE caffe2::TypeMeta dtype() const { return scalarTypeToTypeMeta(scalar_type()); }
  KOPT_INLINE Layout layout() const { return static_cast<Layout>(kopt_layout(impl_)); }
  KOPT_INLINE Device device() const {
    int index = -1;
    const int type = kopt_device(impl_, &index);
    return Device(static_cast<DeviceType>(type), static_cast<DeviceIndex>(index));
  }
  KOPT_INLINE DeviceIndex get_device() const { return device().index(); }
  KOPT_INLINE bool is_cpu() const { return device().is_cpu(); }
  KOPT_INLINE bool is_cuda() const { return device().is_cuda(); }
  KOPT_INLINE bool is_meta() const { return device().is_meta(); }
  KOPT_INLINE bool is_complex() const { return isComplexType(scalar_type()); }
  KOPT_INLINE bool is_floating_point() const {
    const ScalarType type = scalar_type();
    return type == kFloat || type == kDouble || isReducedFloatingType(type);
  }
  KOPT_INLINE TensorOptions options() const {
    return TensorOptions().dtype(dtype()).device(device()).layout(layout());
  }
  KOPT_INLINE bool requires_grad() const { return kopt_requires_grad(impl_); }
  KOPT_INLINE const TensorBase& set_requires_grad(bool value) const {
    kopt_set_requires_grad(this, value);
    return *this;
  }
  KOPT_INLINE bool is_alias_of(const TensorBase& other) const {
    return kopt_is_alias_of(this, &other);
  }
  KOPT_INLINE const void* const_data_ptr() const { return kopt_data(impl_, true); }
  KOPT_INLINE void* mutable_data_ptr() const { return kopt_data(impl_, false); }
  KOPT_INLINE void* data_ptr() const { return kopt_data(impl_, false); }
  template <typename T>
  KOPT_INLINE const std::remove_const_t<T>* const_data_ptr() const {
    return static_cast<const std::remove_const_t<T>*>(kopt_data_as(this, dtype_of<T>(), true));
  }
  template <typename T>
  KOPT_INLINE T* mutable_data_ptr() const {
    static_assert(!std::is_const_v<T>, "mutable_data_ptr of a const type");
    return static_cast<T*>(kopt_data_as(this, dtype_of<T>(), false));
  }
  template <typename T>
  KOPT_INLINE T* data_ptr() const {
    static_assert(!std::is_const_v<T>, "data_ptr of a const type");
    return static_cast<T*>(kopt_data_as(this, dtype_of<T>(), false));
  }

#if KOPT_ACCESSOR
  template <typename T, size_t N>
  KOPT_INLINE TensorAccessor<T, N> accessor() const& {
    static_assert(N > 0, "accessor is used for indexing tensor, for scalars use *data_ptr<T>()");
    TORCH_CHECK(dim() == N, "TensorAccessor expected ", N, " dims but tensor has ", dim());
    return TensorAccessor<T, N>(pointer<T>(), sizes().data(), strides().data());
  }
  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() && = delete;
  template <
      typename T,
      size_t N,
      template <typename U> class PtrTraits = DefaultPtrTraits,
      typename index_t = int64_t>
  KOPT_INLINE GenericPackedTensorAccessor<T, N, PtrTraits, index_t> generic_packed_accessor()
      const& {
    static_assert(N > 0, "accessor is used for indexing tensor, for scalars use *data_ptr<T>()");
    TORCH_CHECK(dim() == N, "TensorAccessor expected ", N, " dims but tensor has ", dim());
    return GenericPackedTensorAccessor<T, N, PtrTraits, index_t>(
        static_cast<typename PtrTraits<T>::PtrType>(pointer<T>()),
        sizes().data(),
        strides().data());
  }
  template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits>
  KOPT_INLINE PackedTensorAccessor32<T, N, PtrTraits> packed_accessor32() const& {
    TORCH_CHECK(
        numel() <= static_cast<int64_t>(std::numeric_limits<int32_t>::max()),
        "numel needs to be smaller than int32_t max; otherwise, please use packed_accessor64");
    return generic_packed_accessor<T, N, PtrTraits, int32_t>();
  }
  template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, PtrTraits> packed_accessor32() && = delete;
  template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits>
  KOPT_INLINE PackedTensorAccessor64<T, N, PtrTraits> packed_accessor64() const& {
    return generic_packed_accessor<T, N, PtrTraits, int64_t>();
  }
  template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, PtrTraits> packed_accessor64() && = delete;
#endif

 protected:
  template <typename T>
  static constexpr int dtype_of() {
    return static_cast<int>(CppTypeToScalarType<std::remove_const_t<T>>::value);
  }
  template <typename T>
  KOPT_INLINE T* pointer() const {
    return static_cast<T*>(kopt_data_as(this, dtype_of<T>(), std::is_const_v<T>));
  }
  template <typename T>
  KOPT_INLINE const T* field(size_t offset) const {
    return reinterpret_cast<const T*>(static_cast<const char*>(impl_) + offset);
  }
  KOPT_INLINE bool is_custom() const {
    return (*field<uint8_t>(KOPT_OFFSET_POLICY) & KOPT_POLICY_MASK) != 0;
  }
  KOPT_INLINE const int64_t* shape(int64_t count) const {
    return count <= KOPT_INLINE_DIMS ? field<int64_t>(KOPT_OFFSET_SHAPE)
                                     : *field<const int64_t*>(KOPT_OFFSET_SHAPE);
  }

  void* impl_;
};

class Tensor : public TensorBase {
 public:
  using TensorBase::size;
  using TensorBase::stride;

  KOPT_INLINE Tensor() {}
  KOPT_INLINE Tensor(const Tensor& other) : TensorBase(other) {}
  KOPT_INLINE Tensor(Tensor&& other) noexcept : TensorBase(std::move(other)) {}
  KOPT_INLINE explicit Tensor(const TensorBase& other) : TensorBase(other) {}
  KOPT_INLINE Tensor(TensorBase&& other) : TensorBase(std::move(other)) {}
  KOPT_INLINE ~Tensor() {}

  KOPT_INLINE Tensor& operator=(const TensorBase& other) & noexcept {
    TensorBase::operator=(other);
    return *this;
  }
  KOPT_INLINE Tensor& operator=(TensorBase&& other) & noexcept {
    TensorBase::operator=(std::move(other));
    return *this;
  }
  KOPT_INLINE Tensor& operator=(const Tensor& other) & noexcept {
    TensorBase::operator=(static_cast<const TensorBase&>(other));
    return *this;
  }
  KOPT_INLINE Tensor& operator=(Tensor&& other) & noexcept {
    TensorBase::operator=(static_cast<TensorBase&&>(other));
    return *this;
  }
  // An element that was indexed is written to.
  KOPT_INLINE Tensor& operator=(const Scalar& value) &&;
  KOPT_INLINE Tensor& operator=(const Tensor& value) &&;
  KOPT_INLINE Tensor& operator=(Tensor&& value) &&;

  KOPT_INLINE Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    if (is_contiguous(format)) return *this;
    Tensor made;
    kopt_contiguous(this, static_cast<int>(format), &made.impl_);
    return made;
  }
  KOPT_INLINE const Tensor& set_requires_grad(bool value) const {
    TensorBase::set_requires_grad(value);
    return *this;
  }
  template <typename T>
  KOPT_INLINE T* data() const {
    return data_ptr<T>();
  }
  template <typename T>
  KOPT_INLINE T item() const {
    T value;
    kopt_item(this, dtype_of<T>(), &value);
    return value;
  }
  KOPT_INLINE Tensor operator-() const;
  KOPT_INLINE Tensor& operator+=(const Tensor& other);
  KOPT_INLINE Tensor& operator+=(const Scalar& other);
  KOPT_INLINE Tensor& operator-=(const Tensor& other);
  KOPT_INLINE Tensor& operator-=(const Scalar& other);
  KOPT_INLINE Tensor& operator*=(const Tensor& other);
  KOPT_INLINE Tensor& operator*=(const Scalar& other);
  KOPT_INLINE Tensor& operator/=(const Tensor& other);
  KOPT_INLINE Tensor& operator/=(const Scalar& other);
  KOPT_INLINE Tensor operator[](int64_t index) const;
  KOPT_INLINE Tensor toType(ScalarType type) const;
  KOPT_INLINE Tensor cpu() const;
  KOPT_INLINE Tensor cuda() const;

#include <kopt_light/tailored_methods.h>
};
static_assert(sizeof(Tensor) == sizeof(void*));
using TensorList = ArrayRef<Tensor>;

}  // namespace at

namespace c10 {

// A list of tensors as operators like cat take it; of torch's three kinds only the plain one.
template <typename T>
class IListRef;
template <>
class IListRef<at::Tensor> {
 public:
  KOPT_INLINE IListRef(at::TensorList tensors) : unboxed_(tensors) {}
  KOPT_INLINE IListRef(const std::vector<at::Tensor>& tensors) : unboxed_(tensors) {}
  KOPT_INLINE IListRef(const std::initializer_list<at::Tensor>& tensors) : unboxed_(tensors) {}

 private:
  at::TensorList unboxed_;
  int tag_ = KOPT_UNBOXED;
};
static_assert(sizeof(IListRef<at::Tensor>) == KOPT_SIZEOF_LIST_REF);

}  // namespace c10

namespace at {

class OptionalTensorRef;
using ITensorList = c10::IListRef<Tensor>;
using ITensorListRef = c10::IListRef<Tensor>;
using IOptTensorListRef = c10::IListRef<OptionalTensorRef>;

// What follows in the namespace at::symint of generated functions.
namespace symint {
template <typename T>
using enable_if_symint = std::enable_if_t<std::is_same_v<T, c10::SymInt>>;
template <typename T>
using enable_if_int = std::enable_if_t<std::is_same_v<T, int64_t>>;
}  // namespace symint

}  // namespace at

#include <kopt_light/operators.h>
#include <kopt_light/tailored_definitions.h>
