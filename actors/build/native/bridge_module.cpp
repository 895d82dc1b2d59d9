// Modules and calls: how a function that was bound by kopt_light/bind.h is found, called, and how
// its errors reach Python. The rules are pybind11's: functions of one name are tried in order, first
// without conversions where there are several; no match is a TypeError.
#include <torch/csrc/Exceptions.h>

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "kopt_light/bridge.h"

namespace {

constexpr const char* CAPSULE = "kopt.function";

void set(PyObject* type, const std::exception& error) { PyErr_SetString(type, error.what()); }

// The exceptions that pybind11 has names for; torch has its own rules for the others.
void translate_like_pybind() {
  try {
    throw;
  } catch (const std::bad_alloc& error) {
    set(PyExc_MemoryError, error);
  } catch (const std::domain_error& error) {
    set(PyExc_ValueError, error);
  } catch (const std::invalid_argument& error) {
    set(PyExc_ValueError, error);
  } catch (const std::length_error& error) {
    set(PyExc_ValueError, error);
  } catch (const std::out_of_range& error) {
    set(PyExc_IndexError, error);
  } catch (const std::range_error& error) {
    set(PyExc_ValueError, error);
  } catch (const std::overflow_error& error) {
    set(PyExc_OverflowError, error);
  } catch (const std::exception&) {
    torch::translate_exception_to_python(std::current_exception());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "Caught an unknown exception!");
  }
}

PyObject* run_like_torch(const KoptFunction& function, PyObject** given, bool convert) {
  HANDLE_TH_ERRORS
  return function.thunk(&function, given, convert);
  END_HANDLE_TH_ERRORS
}

PyObject* run(const KoptFunction& function, PyObject** given, bool convert) {
  try {
    if (function.like_torch) return run_like_torch(function, given, convert);
    return function.thunk(&function, given, convert);
  } catch (...) {
    translate_like_pybind();
    return nullptr;
  }
}

// Puts the arguments of a call in the function's order; false where they do not fit.
bool arrange(
    const KoptFunction& function, PyObject* args, PyObject* kwargs, std::vector<PyObject*>& given) {
  const Py_ssize_t count = function.num_arguments;
  const Py_ssize_t by_position = PyTuple_GET_SIZE(args);
  if (by_position > count) return false;
  Py_ssize_t used = 0;
  given.assign(static_cast<size_t>(count), nullptr);
  for (Py_ssize_t i = 0; i < count; ++i) {
    const KoptArgument& argument = function.arguments[i];
    PyObject* value = i < by_position ? PyTuple_GET_ITEM(args, i) : nullptr;
    if (value == nullptr && kwargs != nullptr && argument.name != nullptr) {
      value = PyDict_GetItemString(kwargs, argument.name);
      used += value != nullptr;
    }
    if (value == nullptr) value = argument.value;
    if (value == nullptr || (argument.no_none && value == Py_None)) return false;
    given[static_cast<size_t>(i)] = value;
  }
  return kwargs == nullptr || used == PyDict_Size(kwargs);
}

PyObject* refuse(const KoptFunction& first, PyObject* args, PyObject* kwargs) {
  std::string text = std::string(first.name) +
      "(): incompatible function arguments. The following argument types are supported:\n";
  int number = 0;
  for (const KoptFunction* each = &first; each != nullptr; each = each->next) {
    text += "    " + std::to_string(++number) + ". (";
    for (int i = 0; i < each->num_arguments; ++i) {
      const char* name = each->arguments[i].name;
      text += (i == 0 ? "" : ", ") + (name ? std::string(name) : "arg" + std::to_string(i));
    }
    text += ")\n";
  }
  text += "\nInvoked with: ";
  PyObject* shown[] = {args, kwargs};
  for (PyObject* each : shown) {
    if (each == nullptr) continue;
    PyObject* words = PyObject_Repr(each);
    const char* utf8 = words == nullptr ? nullptr : PyUnicode_AsUTF8(words);
    text += utf8 == nullptr ? "<repr raised>" : utf8;
    text += each == args && kwargs != nullptr ? "; kwargs: " : "";
    Py_XDECREF(words);
    PyErr_Clear();
  }
  PyErr_SetString(PyExc_TypeError, text.c_str());
  return nullptr;
}

PyObject* dispatch(PyObject* self, PyObject* args, PyObject* kwargs) {
  const auto* first = static_cast<KoptFunction*>(PyCapsule_GetPointer(self, CAPSULE));
  if (first == nullptr) return nullptr;
  std::vector<PyObject*> given;
  for (int pass = first->next == nullptr ? 1 : 0; pass < 2; ++pass) {
    for (const KoptFunction* each = first; each != nullptr; each = each->next) {
      if (!arrange(*each, args, kwargs, given)) continue;
      PyObject* result = run(*each, given.data(), pass == 1);
      if (result != kopt_try_next) return result;
      PyErr_Clear();
    }
  }
  return refuse(*first, args, kwargs);
}

}  // namespace

extern "C" {

PyObject* const kopt_try_next = reinterpret_cast<PyObject*>(1);

PyObject* kopt_new_module(const char* name, void* place) {
  auto* definition = new (place) PyModuleDef{PyModuleDef_HEAD_INIT, name, nullptr, -1, nullptr};
  return PyModule_Create(definition);
}

void kopt_add_function(PyObject* module, KoptFunction* function) {
  PyObject* before = PyObject_GetAttrString(module, function->name);
  if (before != nullptr && PyCFunction_Check(before)) {
    PyObject* self = PyCFunction_GET_SELF(before);
    Py_DECREF(before);
    if (self != nullptr && PyCapsule_IsValid(self, CAPSULE)) {
      auto* last = static_cast<KoptFunction*>(PyCapsule_GetPointer(self, CAPSULE));
      while (last->next != nullptr) last = last->next;
      last->next = function;
      return;
    }
  } else {
    Py_XDECREF(before);
  }
  PyErr_Clear();
  auto* method = new PyMethodDef{
      function->name,
      reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&dispatch)),
      METH_VARARGS | METH_KEYWORDS,
      function->doc};
  PyObject* self = PyCapsule_New(function, CAPSULE, nullptr);
  PyObject* made = self == nullptr ? nullptr : PyCFunction_New(method, self);
  Py_XDECREF(self);
  if (made == nullptr || PyObject_SetAttrString(module, function->name, made) != 0) {
    Py_XDECREF(made);
    throw python_error();
  }
  Py_DECREF(made);
}

void kopt_set_doc(PyObject* module, const char* text) {
  PyObject* words = PyUnicode_FromString(text);
  if (words == nullptr || PyObject_SetAttrString(module, "__doc__", words) != 0) PyErr_Clear();
  Py_XDECREF(words);
}

PyObject* kopt_run_init(PyObject* module, void (*init)(PyObject* module)) {
  if (module == nullptr) return nullptr;
  try {
    init(module);
    return module;
  } catch (...) {
    translate_like_pybind();
    Py_DECREF(module);
    return nullptr;
  }
}

}  // extern "C"
