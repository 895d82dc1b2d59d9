// What the light headers ask of torch: C functions compiled once against torch's own headers
// (bridge.cpp) and linked into every candidate. Tensors cross as addresses of at::Tensor, or as the
// TensorImpl that one holds.
#pragma once

#include <cstddef>
#include <cstdint>

typedef struct _object PyObject;

#define KOPT_INLINE inline __attribute__((always_inline))

extern "C" {
// Tensors.
extern void* const kopt_undefined_impl;
void kopt_incref(void* impl);
void kopt_decref(void* impl);
int64_t kopt_use_count(void* impl);
int64_t kopt_dim(const void* impl);
int64_t kopt_numel(const void* impl);
int64_t kopt_size(const void* impl, int64_t dim);
int64_t kopt_stride(const void* impl, int64_t dim);
const int64_t* kopt_sizes(const void* impl, size_t* count);
const int64_t* kopt_strides(const void* impl, size_t* count);
int64_t kopt_storage_offset(const void* impl);
int kopt_dtype(const void* impl);
int kopt_layout(const void* impl);
int kopt_device(const void* impl, int* index);  // type; its index beside it
int64_t kopt_itemsize(const void* impl);
size_t kopt_nbytes(const void* tensor);
bool kopt_is_contiguous(const void* impl, int memory_format);
bool kopt_is_dense(const void* impl);
int kopt_suggest_memory_format(const void* tensor);
bool kopt_requires_grad(const void* impl);
void kopt_set_requires_grad(const void* tensor, bool value);
bool kopt_is_alias_of(const void* tensor, const void* other);
void* kopt_data(const void* impl, bool is_const);
void* kopt_data_as(const void* tensor, int dtype, bool is_const);
void kopt_contiguous(const void* tensor, int memory_format, void* out_impl);
void kopt_item(const void* tensor, int dtype, void* out);
void kopt_make_variable(void* tensor, bool requires_grad);
void kopt_enter_below_autograd(void* place, size_t size);
void kopt_leave_below_autograd(void* place);
void kopt_enter_no_grad(void* place, size_t size);
void kopt_leave_no_grad(void* place);

// Small values.
const char* kopt_dtype_name(int dtype);
int64_t kopt_dtype_size(int dtype);
int kopt_default_dtype();
void kopt_scalar_to(const void* scalar, int dtype, void* out);
int kopt_scalar_type(const void* scalar);
void kopt_parse_device(const char* text, size_t size, int* type, int* index);
void kopt_put_device(void* text, int type, int index);  // text: std::string
void kopt_put_device_type(void* text, int type);
void kopt_put_layout(void* text, int layout);
void kopt_put_memory_format(void* text, int format);
void kopt_put_type_meta(void* text, int dtype);
void kopt_put_double(void* text, double value);
void kopt_put_ints(void* text, const int64_t* values, size_t count);

// Errors: thrown as torch throws them.
[[noreturn]] void kopt_fail(
    int kind, const char* function, const char* file, uint32_t line, const char* text, size_t size);
void kopt_warn(const char* function, const char* file, uint32_t line, const char* text, size_t size);

// Parallel regions.
int kopt_num_threads();
int kopt_thread_num();
void kopt_set_num_threads(int count);
bool kopt_in_parallel_region();
void kopt_enter_region(void* place, int number);
void kopt_leave_region(void* place);

// Python values. `load` functions return whether the object converts.
bool kopt_load_tensor(PyObject* object, void* tensor);
bool kopt_load_integer(PyObject* object, bool convert, int size, bool is_signed, void* out);
bool kopt_load_double(PyObject* object, bool convert, double* out);
bool kopt_load_bool(PyObject* object, bool convert, bool* out);
bool kopt_load_string(PyObject* object, bool convert, void* text);
bool kopt_load_scalar(PyObject* object, void* scalar);
bool kopt_load_dtype(PyObject* object, int* dtype);
bool kopt_load_device(PyObject* object, int* type, int* index);
bool kopt_load_ints(PyObject* object, void* vector);  // std::vector<int64_t>
bool kopt_is_none(PyObject* object);
bool kopt_open_sequence(PyObject* object, PyObject** items, int64_t* count);  // items: new reference
PyObject* kopt_sequence_item(PyObject* items, int64_t index);  // borrowed
void kopt_release(PyObject* object);
PyObject* kopt_from_tensor(const void* tensor);
PyObject* kopt_from_int64(int64_t value);
PyObject* kopt_from_uint64(uint64_t value);
PyObject* kopt_from_double(double value);
PyObject* kopt_from_bool(bool value);
PyObject* kopt_from_string(const char* text, size_t size);
PyObject* kopt_from_dtype(int dtype);
PyObject* kopt_from_scalar(const void* scalar);
PyObject* kopt_none();
PyObject* kopt_new_list(int64_t count);
PyObject* kopt_new_tuple(int64_t count);
bool kopt_put_item(PyObject* list_or_tuple, int64_t index, PyObject* item);  // takes the item
void kopt_enter_gil_release(void** state);
void kopt_leave_gil_release(void** state);
void kopt_enter_gil(int* state);
void kopt_leave_gil(int* state);

// Modules.
struct KoptFunction;
typedef PyObject* (*KoptThunk)(const KoptFunction* function, PyObject** arguments, bool convert);
struct KoptArgument {
  const char* name;  // null: by position only
  PyObject* value;  // of a default; null: none
  bool no_convert;
  bool no_none;
};
struct KoptFunction {
  const char* name;
  const char* doc;
  KoptThunk thunk;
  void* callee;
  const KoptArgument* arguments;
  int num_arguments;
  bool like_torch;  // errors and warnings as torch::wrap_pybind_function has them
  KoptFunction* next;  // of the same name
};
PyObject* kopt_new_module(const char* name, void* definition);
void kopt_add_function(PyObject* module, KoptFunction* function);
void kopt_set_doc(PyObject* module, const char* text);
PyObject* kopt_run_init(PyObject* module, void (*init)(PyObject* module));
extern PyObject* const kopt_try_next;  // what a thunk answers when the arguments do not convert
}
