// TORCH_CHECK and its kin: the text is put together here, the error is thrown as torch throws it.
#pragma once

#include <kopt_light/bridge.h>

namespace kopt_light {

enum Kind { ERROR, INDEX, TYPE, VALUE, NOT_IMPLEMENTED, LINALG };

KOPT_INLINE void put(std::string& text, const char* value) { text += value; }
KOPT_INLINE void put(std::string& text, const std::string& value) { text += value; }
KOPT_INLINE void put(std::string& text, std::string_view value) { text += value; }
KOPT_INLINE void put(std::string& text, char value) { text += value; }
KOPT_INLINE void put(std::string& text, signed char value) { text += static_cast<char>(value); }
KOPT_INLINE void put(std::string& text, unsigned char value) { text += static_cast<char>(value); }
KOPT_INLINE void put(std::string& text, bool value) { text += value ? '1' : '0'; }
KOPT_INLINE void put(std::string& text, short value) { text += std::to_string(value); }
KOPT_INLINE void put(std::string& text, unsigned short value) { text += std::to_string(value); }
KOPT_INLINE void put(std::string& text, int value) { text += std::to_string(value); }
KOPT_INLINE void put(std::string& text, unsigned value) { text += std::to_string(value); }
KOPT_INLINE void put(std::string& text, long value) { text += std::to_string(value); }
KOPT_INLINE void put(std::string& text, unsigned long value) { text += std::to_string(value); }
KOPT_INLINE void put(std::string& text, long long value) { text += std::to_string(value); }
KOPT_INLINE void put(std::string& text, unsigned long long value) { text += std::to_string(value); }
KOPT_INLINE void put(std::string& text, float value) { kopt_put_double(&text, value); }
KOPT_INLINE void put(std::string& text, double value) { kopt_put_double(&text, value); }
KOPT_INLINE void put(std::string& text, c10::ScalarType value) { text += c10::toString(value); }
KOPT_INLINE void put(std::string& text, caffe2::TypeMeta value) {
  kopt_put_type_meta(&text, static_cast<int>(value.toScalarType()));
}
KOPT_INLINE void put(std::string& text, c10::Device value) {
  kopt_put_device(&text, static_cast<int>(value.type()), value.index());
}
KOPT_INLINE void put(std::string& text, c10::DeviceType value) {
  kopt_put_device_type(&text, static_cast<int>(value));
}
KOPT_INLINE void put(std::string& text, c10::Layout value) {
  kopt_put_layout(&text, static_cast<int>(value));
}
KOPT_INLINE void put(std::string& text, c10::MemoryFormat value) {
  kopt_put_memory_format(&text, static_cast<int>(value));
}
KOPT_INLINE void put(std::string& text, c10::ArrayRef<int64_t> value);

// What no overload takes as it is must not be printed as something else it converts to.
template <typename T>
void put(std::string& text, const T& value) = delete;
template <size_t N>
KOPT_INLINE void put(std::string& text, const char (&value)[N]) {
  text += static_cast<const char*>(value);
}

template <typename... Args>
__attribute__((noinline, cold)) std::string join(const Args&... args) {
  std::string text;
  (put(text, args), ...);
  return text;
}
template <typename... Args>
KOPT_INLINE std::string message(const char*, const Args&... args) {
  return join(args...);
}
KOPT_INLINE std::string message(const char* text) { return text; }

[[noreturn]] KOPT_INLINE void fail(
    Kind kind, const char* function, const char* file, uint32_t line, const std::string& text) {
  kopt_fail(kind, function, file, line, text.data(), text.size());
}

KOPT_INLINE void warn(
    const char* function, const char* file, uint32_t line, const std::string& text) {
  kopt_warn(function, file, line, text.data(), text.size());
}

}  // namespace kopt_light

namespace c10 {
template <typename... Args>
KOPT_INLINE std::string str(const Args&... args) {
  return kopt_light::join(args...);
}
}  // namespace c10

#define KOPT_CHECK(kind, cond, ...)                                                 \
  if (C10_UNLIKELY_OR_CONST(!(cond))) {                                             \
    ::kopt_light::fail(                                                             \
        ::kopt_light::kind,                                                         \
        __func__,                                                                   \
        __FILE__,                                                                   \
        static_cast<uint32_t>(__LINE__),                                            \
        ::kopt_light::message(                                                      \
            "Expected " #cond                                                       \
            " to be true, but got false.  (Could this error message be improved?  " \
            "If so, please report an enhancement request to PyTorch.)",             \
            ##__VA_ARGS__));                                                        \
  }
#ifdef __NVCC__
#define C10_UNLIKELY_OR_CONST(e) e
#else
#define C10_UNLIKELY_OR_CONST(e) C10_UNLIKELY(e)
#endif

#define TORCH_CHECK(cond, ...) KOPT_CHECK(ERROR, cond, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(cond, ...) KOPT_CHECK(INDEX, cond, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(cond, ...) KOPT_CHECK(TYPE, cond, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(cond, ...) KOPT_CHECK(VALUE, cond, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(cond, ...) KOPT_CHECK(NOT_IMPLEMENTED, cond, ##__VA_ARGS__)
#define TORCH_CHECK_LINALG(cond, ...) KOPT_CHECK(LINALG, cond, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(cond, ...)                                                 \
  if (C10_UNLIKELY_OR_CONST(!(cond))) {                                                  \
    ::kopt_light::fail(                                                                  \
        ::kopt_light::ERROR,                                                             \
        __func__,                                                                        \
        __FILE__,                                                                        \
        static_cast<uint32_t>(__LINE__),                                                 \
        ::kopt_light::join(                                                              \
            #cond " INTERNAL ASSERT FAILED at " C10_STRINGIZE(__FILE__) ":" C10_STRINGIZE( \
                __LINE__) ", please report a bug to PyTorch. ",                          \
            ##__VA_ARGS__));                                                             \
  }
#ifdef NDEBUG
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) while (false) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#else
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#endif
#define AT_ERROR(...) \
  [&]() -> void { TORCH_CHECK(false, ::kopt_light::join(__VA_ARGS__)); }()
#define AT_ASSERTM(cond, ...) TORCH_CHECK(cond, ::kopt_light::join(__VA_ARGS__))
#define TORCH_WARN(...)    \
  ::kopt_light::warn(      \
      __func__, __FILE__, static_cast<uint32_t>(__LINE__), ::kopt_light::join(__VA_ARGS__))
#ifndef STD_TORCH_CHECK
#define STD_TORCH_CHECK(cond, ...)                                                            \
  if (C10_UNLIKELY_OR_CONST(!(cond))) {                                                       \
    throw std::runtime_error(::kopt_light::message(                                           \
        "Expected " #cond " to be true, but got false.  (Could this error message be improved?  " \
        "If so, please report an enhancement request to PyTorch.)",                           \
        ##__VA_ARGS__));                                                                      \
  }
#endif
