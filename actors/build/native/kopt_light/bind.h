// Functions for Python under pybind11's names: PYBIND11_MODULE, m.def with arguments by name and
// defaults, and the conversions of tensors, numbers, strings, lists, tuples and optionals. Classes,
// py::object and the rest are not here; a source that names them is built against torch's headers.
#pragma once

#include <kopt_light/tensor.h>

namespace kopt_light {

template <typename T, typename = void>
struct Caster;  // not defined: a type that only pybind11 itself converts

template <>
struct Caster<at::Tensor> {
  at::Tensor value;
  bool load(PyObject* object, bool) { return kopt_load_tensor(object, &value); }
  static PyObject* cast(const at::Tensor& tensor) { return kopt_from_tensor(&tensor); }
};
template <>
struct Caster<bool> {
  bool value = false;
  bool load(PyObject* object, bool convert) { return kopt_load_bool(object, convert, &value); }
  static PyObject* cast(bool given) { return kopt_from_bool(given); }
};
template <typename T>
constexpr bool is_character = std::is_same_v<T, char> || std::is_same_v<T, wchar_t> ||
    std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;
template <typename T>
struct Caster<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool> && !is_character<T>>> {
  T value = 0;
  bool load(PyObject* object, bool convert) {
    return kopt_load_integer(object, convert, sizeof(T), std::is_signed_v<T>, &value);
  }
  static PyObject* cast(T given) {
    if constexpr (std::is_signed_v<T>) return kopt_from_int64(given);
    return kopt_from_uint64(given);
  }
};
template <typename T>
struct Caster<T, std::enable_if_t<std::is_same_v<T, float> || std::is_same_v<T, double>>> {
  T value = 0;
  bool load(PyObject* object, bool convert) {
    double wide = 0;
    const bool loaded = kopt_load_double(object, convert, &wide);
    value = static_cast<T>(wide);
    return loaded;
  }
  static PyObject* cast(T given) { return kopt_from_double(given); }
};
template <>
struct Caster<std::string> {
  std::string value;
  bool load(PyObject* object, bool convert) { return kopt_load_string(object, convert, &value); }
  static PyObject* cast(const std::string& given) {
    return kopt_from_string(given.data(), given.size());
  }
};
template <>
struct Caster<c10::Scalar> {
  c10::Scalar value;
  bool load(PyObject* object, bool) { return kopt_load_scalar(object, &value); }
  static PyObject* cast(const c10::Scalar& given) { return kopt_from_scalar(&given); }
};
template <>
struct Caster<c10::ScalarType> {
  c10::ScalarType value = c10::ScalarType::Undefined;
  bool load(PyObject* object, bool) {
    int type = 0;
    const bool loaded = kopt_load_dtype(object, &type);
    value = static_cast<c10::ScalarType>(type);
    return loaded;
  }
  static PyObject* cast(c10::ScalarType given) { return kopt_from_dtype(static_cast<int>(given)); }
};
template <>
struct Caster<c10::Device> {
  c10::Device value = c10::Device(c10::kCPU);
  bool load(PyObject* object, bool) {
    int type = 0, index = -1;
    const bool loaded = kopt_load_device(object, &type, &index);
    value = c10::Device(
        static_cast<c10::DeviceType>(type), static_cast<c10::DeviceIndex>(index));
    return loaded;
  }
};
template <>
struct Caster<c10::IntArrayRef> {
  c10::IntArrayRef value;
  std::vector<int64_t> held;
  bool load(PyObject* object, bool) {
    if (!kopt_load_ints(object, &held)) return false;
    value = held;
    return true;
  }
};
template <typename T>
struct Caster<std::optional<T>> {
  std::optional<T> value;
  bool load(PyObject* object, bool convert) {
    if (kopt_is_none(object)) return true;
    Caster<T> inner;
    if (!inner.load(object, convert)) return false;
    value.emplace(std::move(inner.value));
    return true;
  }
  static PyObject* cast(const std::optional<T>& given) {
    return given.has_value() ? Caster<T>::cast(*given) : kopt_none();
  }
};

struct Items {
  PyObject* items = nullptr;
  int64_t count = 0;
  explicit Items(PyObject* object) { is_open = kopt_open_sequence(object, &items, &count); }
  ~Items() {
    if (is_open) kopt_release(items);
  }
  bool is_open;
};
template <typename T>
struct Caster<std::vector<T>> {
  std::vector<T> value;
  bool load(PyObject* object, bool convert) {
    Items items(object);
    if (!items.is_open) return false;
    value.reserve(static_cast<size_t>(items.count));
    for (int64_t i = 0; i < items.count; ++i) {
      Caster<T> inner;
      if (!inner.load(kopt_sequence_item(items.items, i), convert)) return false;
      value.push_back(std::move(inner.value));
    }
    return true;
  }
  static PyObject* cast(const std::vector<T>& given) {
    PyObject* list = kopt_new_list(static_cast<int64_t>(given.size()));
    int64_t index = 0;
    for (const T& each : given) {
      if (!kopt_put_item(list, index++, Caster<T>::cast(each))) return nullptr;
    }
    return list;
  }
};
template <typename Tuple, typename... T>
struct TupleCaster {
  Tuple value;
  bool load(PyObject* object, bool convert) {
    return load_all(object, convert, std::index_sequence_for<T...>());
  }
  static PyObject* cast(const Tuple& given) {
    return cast_all(given, std::index_sequence_for<T...>());
  }

 private:
  template <size_t... I>
  bool load_all(PyObject* object, bool convert, std::index_sequence<I...>) {
    Items items(object);
    if (!items.is_open || items.count != static_cast<int64_t>(sizeof...(T))) return false;
    return (load_one<I, T>(items.items, convert) && ...);
  }
  template <size_t I, typename One>
  bool load_one(PyObject* items, bool convert) {
    Caster<One> inner;
    if (!inner.load(kopt_sequence_item(items, I), convert)) return false;
    std::get<I>(value) = std::move(inner.value);
    return true;
  }
  template <size_t... I>
  static PyObject* cast_all(const Tuple& given, std::index_sequence<I...>) {
    PyObject* tuple = kopt_new_tuple(sizeof...(T));
    const bool done =
        (kopt_put_item(tuple, I, Caster<std::decay_t<T>>::cast(std::get<I>(given))) && ...);
    return done ? tuple : nullptr;
  }
};
template <typename... T>
struct Caster<std::tuple<T...>> : TupleCaster<std::tuple<T...>, T...> {};
template <typename A, typename B>
struct Caster<std::pair<A, B>> : TupleCaster<std::pair<A, B>, A, B> {};

// -- callables ----------------------------------------------------------------------------------

template <typename F>
struct Signature : Signature<decltype(&F::operator())> {};
template <typename R, typename... A>
struct Signature<R (*)(A...)> {
  using Result = R;
  using Arguments = std::tuple<A...>;
};
template <typename R, typename C, typename... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <typename R, typename C, typename... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};

template <typename F>
struct LikeTorch {
  F function;
  bool releases_gil;
};

struct Nothing {};

template <typename F, typename Guard, typename R, typename Arguments, size_t... I>
PyObject* call(
    const KoptFunction* function, PyObject** given, bool convert, std::index_sequence<I...>) {
  (void)given;
  (void)convert;
  std::tuple<Caster<std::decay_t<std::tuple_element_t<I, Arguments>>>...> casters;
  const bool loaded =
      (std::get<I>(casters).load(
           given[I], convert && !function->arguments[I].no_convert) && ...);
  if (!loaded) return kopt_try_next;
  F& callee = *static_cast<F*>(function->callee);
  if constexpr (std::is_void_v<R>) {
    [[maybe_unused]] Guard guard;
    callee(static_cast<std::tuple_element_t<I, Arguments>&&>(std::get<I>(casters).value)...);
  } else {
    auto run = [&]() -> R {
      [[maybe_unused]] Guard guard;
      return callee(
          static_cast<std::tuple_element_t<I, Arguments>&&>(std::get<I>(casters).value)...);
    };
    return Caster<std::decay_t<R>>::cast(run());
  }
  return kopt_none();
}
template <typename F, typename Guard>
PyObject* thunk(const KoptFunction* function, PyObject** given, bool convert) {
  using Found = Signature<F>;
  using Arguments = typename Found::Arguments;
  return call<F, Guard, typename Found::Result, Arguments>(
      function, given, convert, std::make_index_sequence<std::tuple_size_v<Arguments>>());
}

}  // namespace kopt_light

namespace pybind11 {

class gil_scoped_release {
 public:
  gil_scoped_release() { kopt_enter_gil_release(&state_); }
  ~gil_scoped_release() { kopt_leave_gil_release(&state_); }
  gil_scoped_release(const gil_scoped_release&) = delete;
  gil_scoped_release& operator=(const gil_scoped_release&) = delete;

 private:
  void* state_ = nullptr;
};
class gil_scoped_acquire {
 public:
  gil_scoped_acquire() { kopt_enter_gil(&state_); }
  ~gil_scoped_acquire() { kopt_leave_gil(&state_); }
  gil_scoped_acquire(const gil_scoped_acquire&) = delete;
  gil_scoped_acquire& operator=(const gil_scoped_acquire&) = delete;

 private:
  int state_ = 0;
};
template <typename... Guards>
struct call_guard;
template <>
struct call_guard<> {
  using type = kopt_light::Nothing;
};
template <typename Guard>
struct call_guard<Guard> {
  using type = Guard;
};

struct none_t {};
KOPT_INLINE none_t none() { return {}; }

struct arg_v;
struct arg {
  constexpr explicit arg(const char* given = nullptr) : name(given) {}
  template <typename T>
  arg_v operator=(T&& value) const;
  arg& noconvert(bool value = true) {
    no_convert = value;
    return *this;
  }
  arg& none(bool value = true) {
    no_none = !value;
    return *this;
  }
  const char* name;
  bool no_convert = false;
  bool no_none = false;
};
struct arg_v : arg {
  arg_v(const arg& base, PyObject* given) : arg(base), value(given) {}
  PyObject* value;
};
template <typename T>
arg_v arg::operator=(T&& value) const {
  using Plain = std::decay_t<T>;
  if constexpr (std::is_same_v<Plain, none_t> || std::is_same_v<Plain, std::nullopt_t>) {
    return arg_v(*this, kopt_none());
  } else if constexpr (std::is_convertible_v<T, const char*>) {
    return arg_v(*this, kopt_light::Caster<std::string>::cast(std::string(value)));
  } else {
    return arg_v(*this, kopt_light::Caster<Plain>::cast(value));
  }
}
inline namespace literals {
constexpr arg operator""_a(const char* name, size_t) { return arg(name); }
}  // namespace literals

class module_ {
 public:
  explicit module_(PyObject* module) : module_object_(module) {}
  struct Doc {
    PyObject* module_object;
    void operator=(const char* text) { kopt_set_doc(module_object, text); }
  };
  Doc doc() { return Doc{module_object_}; }

  template <typename F, typename... Extra>
  module_& def(const char* name, F&& function, const Extra&... extra) {
    using Plain = std::decay_t<F>;
    add<typename Guard<Extra...>::type>(name, Plain(std::forward<F>(function)), extra...);
    return *this;
  }

 private:
  template <typename... Extra>
  struct Guard {
    using type = kopt_light::Nothing;
  };
  template <typename... G, typename... Rest>
  struct Guard<call_guard<G...>, Rest...> {
    using type = typename call_guard<G...>::type;
  };
  template <typename First, typename... Rest>
  struct Guard<First, Rest...> : Guard<Rest...> {};

  struct Described {
    const char* doc = nullptr;
    std::vector<KoptArgument>* arguments;
    void take(const char* text) { doc = text; }
    void take(const arg_v& given) {
      arguments->push_back({given.name, given.value, given.no_convert, given.no_none});
    }
    void take(const arg& given) {
      arguments->push_back({given.name, nullptr, given.no_convert, given.no_none});
    }
    template <typename... G>
    void take(const call_guard<G...>&) {}
  };

  template <typename G, typename F, typename... Extra>
  void add(const char* name, kopt_light::LikeTorch<F> wrapped, const Extra&... extra) {
    if (wrapped.releases_gil) {
      put<gil_scoped_release>(name, std::move(wrapped.function), true, extra...);
    } else {
      put<G>(name, std::move(wrapped.function), true, extra...);
    }
  }
  template <typename G, typename F, typename... Extra>
  void add(const char* name, F function, const Extra&... extra) {
    put<G>(name, std::move(function), false, extra...);
  }
  template <typename G, typename F, typename... Extra>
  void put(const char* name, F function, bool like_torch, const Extra&... extra) {
    constexpr size_t count = std::tuple_size_v<typename kopt_light::Signature<F>::Arguments>;
    auto* arguments = new std::vector<KoptArgument>();
    Described described{nullptr, arguments};
    (described.take(extra), ...);
    TORCH_CHECK(
        arguments->empty() || arguments->size() == count,
        "The number of argument annotations does not match the number of function arguments");
    while (arguments->size() < count) arguments->push_back({nullptr, nullptr, false, false});
    kopt_add_function(
        module_object_,
        new KoptFunction{
            name, described.doc, &kopt_light::thunk<F, G>, new F(std::move(function)),
            arguments->data(), static_cast<int>(count), like_torch, nullptr});
  }

  PyObject* module_object_;
};
using module = module_;

}  // namespace pybind11
namespace py = pybind11;

namespace torch {
template <typename F>
auto wrap_pybind_function(F&& function) {
  return kopt_light::LikeTorch<std::decay_t<F>>{std::forward<F>(function), false};
}
template <typename F>
auto wrap_pybind_function_no_gil(F&& function) {
  return kopt_light::LikeTorch<std::decay_t<F>>{std::forward<F>(function), true};
}
}  // namespace torch

#define KOPT_JOIN_2(a, b) a##b
#define KOPT_JOIN(a, b) KOPT_JOIN_2(a, b)
#define KOPT_TEXT_2(a) #a
#define KOPT_TEXT(a) KOPT_TEXT_2(a)
#define PYBIND11_MODULE(name, variable)                                                     \
  static void KOPT_JOIN(kopt_fill_, name)(::pybind11::module_&);                            \
  static void KOPT_JOIN(kopt_init_, name)(PyObject * object) {                              \
    ::pybind11::module_ module(object);                                                     \
    KOPT_JOIN(kopt_fill_, name)(module);                                                    \
  }                                                                                         \
  extern "C" __attribute__((visibility("default"))) PyObject* KOPT_JOIN(PyInit_, name)() {  \
    static char definition[KOPT_SIZEOF_MODULE_DEF] __attribute__((aligned(16)));            \
    return kopt_run_init(                                                                   \
        kopt_new_module(KOPT_TEXT(name), definition), &KOPT_JOIN(kopt_init_, name));        \
  }                                                                                         \
  void KOPT_JOIN(kopt_fill_, name)(::pybind11::module_ & variable)
