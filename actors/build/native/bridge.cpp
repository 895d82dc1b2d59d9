// The functions of kopt_light/bridge.h, compiled once for a torch and a compiler against torch's own
// headers, and linked into every candidate that is built through the light ones.
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/item.h>
#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "kopt_light/bridge.h"
#include "region.h"

namespace {

const c10::TensorImpl* impl_of(const void* impl) {
  return static_cast<const c10::TensorImpl*>(impl);
}
const at::Tensor& tensor_of(const void* tensor) { return *static_cast<const at::Tensor*>(tensor); }
std::string& text_of(void* text) { return *static_cast<std::string*>(text); }
template <typename T>
void put(void* text, const T& value) {
  std::ostringstream words;
  words << value;
  text_of(text) += words.str();
}
// Calls `body` with a value of the C++ type that a dtype has.
template <typename F>
void with_type(int dtype, F body) {
  switch (static_cast<c10::ScalarType>(dtype)) {
#define KOPT_CASE(type, name)   \
  case c10::ScalarType::name:   \
    body(static_cast<type*>(nullptr)); \
    return;
    AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(KOPT_CASE)
    KOPT_CASE(uint16_t, UInt16)
    KOPT_CASE(uint32_t, UInt32)
    KOPT_CASE(uint64_t, UInt64)
#undef KOPT_CASE
    default:
      TORCH_CHECK(false, "no C++ type for ", static_cast<c10::ScalarType>(dtype));
  }
}
template <typename T>
bool load(PyObject* object, bool convert, T* out) {
  pybind11::detail::make_caster<T> caster;
  if (!caster.load(object, convert)) return false;
  *out = pybind11::detail::cast_op<T>(caster);
  return true;
}
PyObject* handed(pybind11::handle handle) { return handle.ptr(); }

}  // namespace

extern "C" {

void* const kopt_undefined_impl = c10::UndefinedTensorImpl::singleton();

void kopt_incref(void* impl) {
  if (impl != kopt_undefined_impl) {
    c10::raw::intrusive_ptr::incref(static_cast<c10::TensorImpl*>(impl));
  }
}
void kopt_decref(void* impl) {
  if (impl != kopt_undefined_impl) {
    c10::raw::intrusive_ptr::decref(static_cast<c10::TensorImpl*>(impl));
  }
}
int64_t kopt_use_count(void* impl) {
  return static_cast<int64_t>(
      c10::raw::intrusive_ptr::use_count(static_cast<c10::TensorImpl*>(impl)));
}
int64_t kopt_dim(const void* impl) { return impl_of(impl)->dim(); }
int64_t kopt_numel(const void* impl) { return impl_of(impl)->numel(); }
int64_t kopt_size(const void* impl, int64_t dim) { return impl_of(impl)->size(dim); }
int64_t kopt_stride(const void* impl, int64_t dim) {
  const auto strides = impl_of(impl)->strides();
  return strides[c10::maybe_wrap_dim(dim, static_cast<int64_t>(strides.size()), false)];
}
const int64_t* kopt_sizes(const void* impl, size_t* count) {
  const auto sizes = impl_of(impl)->sizes();
  *count = sizes.size();
  return sizes.data();
}
const int64_t* kopt_strides(const void* impl, size_t* count) {
  const auto strides = impl_of(impl)->strides();
  *count = strides.size();
  return strides.data();
}
int64_t kopt_storage_offset(const void* impl) { return impl_of(impl)->storage_offset(); }
int kopt_dtype(const void* impl) {
  return static_cast<int>(c10::typeMetaToScalarType(impl_of(impl)->dtype()));
}
int kopt_layout(const void* impl) { return static_cast<int>(impl_of(impl)->layout()); }
int kopt_device(const void* impl, int* index) {
  const c10::Device device = impl_of(impl)->device();
  *index = device.index();
  return static_cast<int>(device.type());
}
int64_t kopt_itemsize(const void* impl) { return static_cast<int64_t>(impl_of(impl)->itemsize()); }
size_t kopt_nbytes(const void* tensor) { return tensor_of(tensor).nbytes(); }
bool kopt_is_contiguous(const void* impl, int memory_format) {
  return impl_of(impl)->is_contiguous(static_cast<c10::MemoryFormat>(memory_format));
}
bool kopt_is_dense(const void* impl) { return impl_of(impl)->is_non_overlapping_and_dense(); }
int kopt_suggest_memory_format(const void* tensor) {
  return static_cast<int>(tensor_of(tensor).suggest_memory_format());
}
bool kopt_requires_grad(const void* impl) { return impl_of(impl)->requires_grad(); }
void kopt_set_requires_grad(const void* tensor, bool value) {
  tensor_of(tensor).set_requires_grad(value);
}
bool kopt_is_alias_of(const void* tensor, const void* other) {
  return tensor_of(tensor).is_alias_of(tensor_of(other));
}
void* kopt_data(const void* impl, bool is_const) {
  auto* of = const_cast<c10::TensorImpl*>(impl_of(impl));
  return is_const ? const_cast<void*>(of->data()) : of->mutable_data();
}
void* kopt_data_as(const void* tensor, int dtype, bool is_const) {
  void* data = nullptr;
  with_type(dtype, [&](auto* of_type) {
    using T = std::remove_pointer_t<decltype(of_type)>;
    data = is_const
        ? static_cast<void*>(const_cast<T*>(tensor_of(tensor).const_data_ptr<T>()))
        : static_cast<void*>(tensor_of(tensor).mutable_data_ptr<T>());
  });
  return data;
}
void kopt_contiguous(const void* tensor, int memory_format, void* out_impl) {
  at::Tensor made = tensor_of(tensor).contiguous(static_cast<c10::MemoryFormat>(memory_format));
  *static_cast<c10::TensorImpl**>(out_impl) = made.unsafeReleaseTensorImpl();
}
void kopt_item(const void* tensor, int dtype, void* out) {
  const c10::Scalar value = at::_ops::item::call(tensor_of(tensor));
  kopt_scalar_to(&value, dtype, out);
}
void kopt_make_variable(void* tensor, bool requires_grad) {
  // What torch::autograd::make_variable does of a tensor just made, whose header takes 7 s.
  if (requires_grad) static_cast<at::Tensor*>(tensor)->set_requires_grad(true);
}
void kopt_enter_below_autograd(void* place, size_t) {
  new (place) at::AutoDispatchBelowADInplaceOrView();
}
void kopt_leave_below_autograd(void* place) {
  static_cast<at::AutoDispatchBelowADInplaceOrView*>(place)->~AutoDispatchBelowADInplaceOrView();
}
void kopt_enter_no_grad(void* place, size_t) { new (place) at::NoGradGuard(); }
void kopt_leave_no_grad(void* place) { static_cast<at::NoGradGuard*>(place)->~NoGradGuard(); }

const char* kopt_dtype_name(int dtype) { return c10::toString(static_cast<c10::ScalarType>(dtype)); }
int64_t kopt_dtype_size(int dtype) {
  return static_cast<int64_t>(c10::elementSize(static_cast<c10::ScalarType>(dtype)));
}
int kopt_default_dtype() { return static_cast<int>(c10::get_default_dtype_as_scalartype()); }
void kopt_scalar_to(const void* scalar, int dtype, void* out) {
  with_type(dtype, [&](auto* of_type) {
    using T = std::remove_pointer_t<decltype(of_type)>;
    *static_cast<T*>(out) = static_cast<const c10::Scalar*>(scalar)->to<T>();
  });
}
int kopt_scalar_type(const void* scalar) {
  return static_cast<int>(static_cast<const c10::Scalar*>(scalar)->type());
}
void kopt_parse_device(const char* text, size_t size, int* type, int* index) {
  const c10::Device device(std::string(text, size));
  *type = static_cast<int>(device.type());
  *index = device.index();
}
void kopt_put_device(void* text, int type, int index) {
  put(text,
      c10::Device(static_cast<c10::DeviceType>(type), static_cast<c10::DeviceIndex>(index)));
}
void kopt_put_device_type(void* text, int type) { put(text, static_cast<c10::DeviceType>(type)); }
void kopt_put_layout(void* text, int layout) { put(text, static_cast<c10::Layout>(layout)); }
void kopt_put_memory_format(void* text, int format) {
  put(text, static_cast<c10::MemoryFormat>(format));
}
void kopt_put_type_meta(void* text, int dtype) {
  put(text, c10::scalarTypeToTypeMeta(static_cast<c10::ScalarType>(dtype)));
}
void kopt_put_double(void* text, double value) { put(text, value); }
void kopt_put_ints(void* text, const int64_t* values, size_t count) {
  put(text, c10::IntArrayRef(values, count));
}

void kopt_fail(
    int kind, const char* function, const char* file, uint32_t line, const char* text, size_t size) {
  const c10::SourceLocation place{function, file, line};
  std::string words(text, size);
  switch (kind) {
    case 1:
      throw c10::IndexError(place, std::move(words));
    case 2:
      throw c10::TypeError(place, std::move(words));
    case 3:
      throw c10::ValueError(place, std::move(words));
    case 4:
      throw c10::NotImplementedError(place, std::move(words));
    case 5:
      throw c10::LinAlgError(place, std::move(words));
    default:
      throw c10::Error(place, std::move(words));
  }
}
void kopt_warn(
    const char* function, const char* file, uint32_t line, const char* text, size_t size) {
  c10::warn(c10::Warning(
      c10::UserWarning(), {function, file, line}, std::string(text, size), /*verbatim=*/false));
}

int kopt_num_threads() { return at::get_num_threads(); }
int kopt_thread_num() { return at::get_thread_num(); }
void kopt_set_num_threads(int count) { at::set_num_threads(count); }
bool kopt_in_parallel_region() { return at::in_parallel_region(); }
void kopt_enter_region(void* place, int number) { new (place) KoptRegion(number); }
void kopt_leave_region(void* place) { static_cast<KoptRegion*>(place)->~KoptRegion(); }

bool kopt_load_tensor(PyObject* object, void* tensor) {
  return load(object, false, static_cast<at::Tensor*>(tensor));
}
bool kopt_load_integer(PyObject* object, bool convert, int size, bool is_signed, void* out) {
  switch (is_signed ? size : -size) {
    case 1:
      return load(object, convert, static_cast<int8_t*>(out));
    case 2:
      return load(object, convert, static_cast<int16_t*>(out));
    case 4:
      return load(object, convert, static_cast<int32_t*>(out));
    case 8:
      return load(object, convert, static_cast<int64_t*>(out));
    case -1:
      return load(object, convert, static_cast<uint8_t*>(out));
    case -2:
      return load(object, convert, static_cast<uint16_t*>(out));
    case -4:
      return load(object, convert, static_cast<uint32_t*>(out));
    default:
      return load(object, convert, static_cast<uint64_t*>(out));
  }
}
bool kopt_load_double(PyObject* object, bool convert, double* out) {
  return load(object, convert, out);
}
bool kopt_load_bool(PyObject* object, bool convert, bool* out) {
  return load(object, convert, out);
}
bool kopt_load_string(PyObject* object, bool convert, void* text) {
  return load(object, convert, static_cast<std::string*>(text));
}
bool kopt_load_scalar(PyObject* object, void* scalar) {
  return load(object, true, static_cast<c10::Scalar*>(scalar));
}
bool kopt_load_dtype(PyObject* object, int* dtype) {
  if (!THPDtype_Check(object)) return false;
  *dtype = static_cast<int>(reinterpret_cast<THPDtype*>(object)->scalar_type);
  return true;
}
bool kopt_load_device(PyObject* object, int* type, int* index) {
  if (!THPDevice_Check(object)) return false;
  const c10::Device device = reinterpret_cast<THPDevice*>(object)->device;
  *type = static_cast<int>(device.type());
  *index = device.index();
  return true;
}
bool kopt_load_ints(PyObject* object, void* vector) {
  pybind11::detail::make_caster<c10::IntArrayRef> caster;
  if (!caster.load(object, true)) return false;
  *static_cast<std::vector<int64_t>*>(vector) =
      pybind11::detail::cast_op<c10::IntArrayRef>(caster).vec();
  return true;
}
bool kopt_is_none(PyObject* object) { return object == Py_None; }
bool kopt_open_sequence(PyObject* object, PyObject** items, int64_t* count) {
  if (!PySequence_Check(object) || PyUnicode_Check(object) || PyBytes_Check(object)) return false;
  *items = PySequence_Fast(object, "expected a sequence");
  if (*items == nullptr) {
    PyErr_Clear();
    return false;
  }
  *count = PySequence_Fast_GET_SIZE(*items);
  return true;
}
PyObject* kopt_sequence_item(PyObject* items, int64_t index) {
  return PySequence_Fast_GET_ITEM(items, index);
}
void kopt_release(PyObject* object) { Py_XDECREF(object); }
PyObject* kopt_from_tensor(const void* tensor) {
  return handed(pybind11::detail::make_caster<at::Tensor>::cast(
      tensor_of(tensor), pybind11::return_value_policy::move, {}));
}
PyObject* kopt_from_int64(int64_t value) { return PyLong_FromLongLong(value); }
PyObject* kopt_from_uint64(uint64_t value) { return PyLong_FromUnsignedLongLong(value); }
PyObject* kopt_from_double(double value) { return PyFloat_FromDouble(value); }
PyObject* kopt_from_bool(bool value) { return PyBool_FromLong(value); }
PyObject* kopt_from_string(const char* text, size_t size) {
  return PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(size), nullptr);
}
PyObject* kopt_from_dtype(int dtype) {
  return handed(pybind11::detail::make_caster<at::ScalarType>::cast(
      static_cast<at::ScalarType>(dtype), pybind11::return_value_policy::move, {}));
}
PyObject* kopt_from_scalar(const void* scalar) {
  return handed(pybind11::detail::make_caster<c10::Scalar>::cast(
      *static_cast<const c10::Scalar*>(scalar), pybind11::return_value_policy::move, {}));
}
PyObject* kopt_none() {
  Py_INCREF(Py_None);
  return Py_None;
}
PyObject* kopt_new_list(int64_t count) { return PyList_New(count); }
PyObject* kopt_new_tuple(int64_t count) { return PyTuple_New(count); }
bool kopt_put_item(PyObject* list_or_tuple, int64_t index, PyObject* item) {
  if (item == nullptr) {
    Py_XDECREF(list_or_tuple);
    return false;
  }
  if (PyList_Check(list_or_tuple)) {
    PyList_SET_ITEM(list_or_tuple, index, item);
  } else {
    PyTuple_SET_ITEM(list_or_tuple, index, item);
  }
  return true;
}
void kopt_enter_gil_release(void** state) { *state = PyEval_SaveThread(); }
void kopt_leave_gil_release(void** state) {
  PyEval_RestoreThread(static_cast<PyThreadState*>(*state));
}
void kopt_enter_gil(int* state) { *state = static_cast<int>(PyGILState_Ensure()); }
void kopt_leave_gil(int* state) { PyGILState_Release(static_cast<PyGILState_STATE>(*state)); }

}  // extern "C"
