"""A C++ or CUDA compiler that builds torch extensions through light headers where it can.

Run by torch in place of the real compiler, in the sandbox of a build: it imports nothing but the
standard library. `light_compiler.py KIND REAL ARGUMENT...`, KIND `cxx` or `nvcc`. A source that
does not compile through the light headers is compiled as it would have been, and what that prints
is what the caller sees; unless that is certain without asking (see `light_errors`). An extension is
built wholly the one way or wholly the other. Flags are never changed, but for two include folders
put first.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

TOOLCHAIN = Path(__file__).resolve().parent
"""The folder that `provision` made, with this file in it."""
LIGHT, STOCK = ".light", ".stock"
"""Marks beside an object: how it was compiled."""

BEYOND = re.compile(
    r"TORCH_LIBRARY|\bpy::(?:class_|object|dict|list|array|function|enum_)\b|\btorch::(?:nn|jit|optim)\b"
    r"|\btorch::autograd::Function\b|\bindexing::|<pybind11/(?!pybind11\.h|stl\.h)"
)
"""What the light headers lack for sure: trying them first would only cost time."""
_TORCH_HEADER = re.compile(r"#\s*include\s*[<\"](?:torch|ATen|c10|pybind11)/")
_TORCH_FOLDER = re.compile(r"/torch/include/")
_LOCAL_INCLUDE = re.compile(r"#\s*include\s*\"([^\"]+)\"")
_CALLED = re.compile(r"(?<![\w.])(?<!->)(\w+)\s*(?=[(<])")
_MEMBER = re.compile(r"(?:\.|->)\s*(?:template\s+)?(\w+)")
_WORD = re.compile(r"\b[a-z]\w*\b")
_SWITCHES = {
    "KOPT_BIND": re.compile(r"PYBIND11_|\bpy::|pybind"),
    "KOPT_HALF": re.compile(r"Half|BFloat16|HALF|Float16|BF16"),
    "KOPT_COMPLEX": re.compile(r"omplex|COMPLEX"),
    "KOPT_ACCESSOR": re.compile(r"ccessor|PtrTraits"),
    "KOPT_DISPATCH": re.compile(r"AT_DISPATCH"),
}
_STANDARD = {
    "algorithm": "adjacent_find all_of any_of binary_search clamp copy_if count count_if find"
    " find_if for_each generate is_sorted lower_bound make_heap max max_element merge min"
    " min_element minmax minmax_element mismatch none_of nth_element partial_sort partition"
    " pop_heap push_heap remove remove_if replace reverse rotate sample search shuffle sort"
    " sort_heap stable_sort swap_ranges transform unique upper_bound set_difference"
    " set_intersection set_union",
    "atomic": "atomic",
    "bitset": "bitset",
    "chrono": "chrono",
    "complex": "complex",
    "condition_variable": "condition_variable",
    "deque": "deque",
    "functional": "function bind hash cref ref invoke not_fn mem_fn plus minus multiplies divides"
    " greater less greater_equal less_equal equal_to negate placeholders",
    "iomanip": "setprecision setw setfill",
    "iostream": "cout cerr endl clog",
    "list": "list",
    "map": "map multimap",
    "memory": "allocator shared_ptr unique_ptr weak_ptr make_shared make_unique addressof align"
    " pointer_traits default_delete uninitialized_copy uninitialized_fill",
    "mutex": "mutex lock_guard unique_lock once_flag call_once scoped_lock recursive_mutex",
    "numeric": "accumulate iota partial_sum inner_product reduce gcd lcm",
    "queue": "queue priority_queue",
    "set": "set multiset",
    "span": "span",
    "sstream": "stringstream ostringstream istringstream",
    "thread": "thread this_thread",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_set unordered_multiset",
    "variant": "variant visit",
}
"""Headers of the standard library that torch's own bring along, by what they are needed for."""
_HEADER_OF = {name: header for header, names in _STANDARD.items() for name in names.split()}
_DEPENDENCIES = {"-MMD": 0, "-MD": 0, "-MF": 1}


@dataclass(frozen=True, slots=True)
class Compilation:
    """One source to one object."""

    source: str
    target: str
    depfile: str | None
    arguments: list[str]
    """Without those for dependencies."""


def main(words: Sequence[str]) -> int:
    """Compile, link, or pass a command on; return its exit status."""
    kind, real, arguments = words[0], words[1], list(words[2:])
    compilation = as_compilation(arguments)
    if compilation is not None and any("-DTORCH_EXTENSION_NAME" in word for word in arguments):
        return compile_source(compilation, real=real, arguments=arguments)
    objects = [word for word in arguments if word.endswith(".o") and _is_marked(word, LIGHT)]
    if kind == "cxx" and objects and "-shared" in arguments and "-c" not in arguments:
        return link(arguments, objects=objects, real=real)
    return run([real, *arguments])


def as_compilation(arguments: Sequence[str]) -> Compilation | None:
    """Return what a command compiles, or None where it is no compilation of one source."""
    if arguments.count("-c") != 1 or arguments.count("-o") != 1:
        return None
    kept: list[str] = []
    depfile = source = target = None
    words = iter(arguments)
    for word in words:
        if word in _DEPENDENCIES:
            depfile = next(words, None) if _DEPENDENCIES[word] else depfile
            continue
        kept.append(word)
        if word in ("-c", "-o"):
            value = next(words, None)
            if value is None:
                return None
            kept.append(value)
            source, target = (value, target) if word == "-c" else (source, value)
    if source is None or target is None:
        return None
    return Compilation(source, target, depfile, kept)


def compile_source(wanted: Compilation, *, real: str, arguments: list[str]) -> int:
    """Compile through the light headers, or as torch asked where that fails.

    What has nothing of torch's, a kernel with its launch, is compiled as it is and fits both.
    """
    for mark in (LIGHT, STOCK):
        Path(wanted.target + mark).unlink(missing_ok=True)
    sources = read_sources(Path(wanted.source))
    text = "\n".join(sources.values())
    names_torch = _TORCH_HEADER.search(text) is not None
    if names_torch and not BEYOND.search(text):
        folder = Path(wanted.target + ".headers")
        try:
            write_tailored(text, folder=folder)
            command = [real, "-isystem", str(folder), "-isystem", str(TOOLCHAIN / "include")]
            tried = subprocess.run(
                [*command, *wanted.arguments],
                capture_output=True,
                check=False,
                text=True,
                errors="replace",
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if tried.returncode == 0:
            if wanted.depfile is not None:
                escaped = [str(path).replace(" ", "\\ ") for path in sources]
                Path(wanted.depfile).write_text(f"{wanted.target}: {' '.join(escaped)}\n")
            Path(wanted.target + LIGHT).write_text(json.dumps([real, *arguments]))
            return 0
        words = certain_words(tried.stderr, tried.stdout, sources=sources)
        if words is not None:
            sys.stderr.write(words)
            return tried.returncode
    code = run([real, *arguments])
    if names_torch or _reads_torch(wanted.depfile):
        Path(wanted.target + STOCK).touch()
    return code


def _reads_torch(depfile: str | None) -> bool:
    """Whether what a source includes leads to torch's headers: such a one is linked to its like."""
    if depfile is None or not os.path.exists(depfile):
        return True
    text = Path(depfile).read_text(encoding="utf-8", errors="replace")
    return _TORCH_FOLDER.search(text) is not None


def certain_words(*said: str, sources: dict[Path, str]) -> str | None:
    """Return what torch's own build would say of a source that fails, where that is certain."""
    try:
        known = frozenset((TOOLCHAIN / "words").read_text(encoding="utf-8").split("\n"))
    except FileNotFoundError:
        return None
    errors = runpy.run_path(str(Path(__file__).with_name("light_errors.py")))
    words: str | None = errors["certain_words"]("\n".join(said), sources=sources, known=known)
    return words


def link(arguments: list[str], *, objects: list[str], real: str) -> int:
    """Link an extension; a mixed one is compiled again as torch asked."""
    others = [word for word in arguments if word.endswith(".o") and _is_marked(word, STOCK)]
    if not others:
        bridges = sorted(TOOLCHAIN.glob("bridge*.o"))
        if "-lc10_cuda" not in arguments:
            bridges = [bridge for bridge in bridges if "cuda" not in bridge.name]
        tried = subprocess.run(
            [real, *map(str, bridges), *arguments], capture_output=True, check=False
        )
        if tried.returncode == 0:
            return 0
    commands = [json.loads(Path(word + LIGHT).read_text()) for word in objects]
    for word in objects:
        Path(word + LIGHT).rename(word + STOCK)
    codes = run_all(commands)
    return next((code for code in codes if code), 0) or run([real, *arguments])


def read_sources(source: Path) -> dict[Path, str]:
    """Return a source and the files beside it that it includes, by path."""
    found: dict[Path, str] = {}
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path in found or not path.is_file():
            continue
        found[path] = path.read_text(encoding="utf-8", errors="replace")
        waiting += [path.parent / name for name in _LOCAL_INCLUDE.findall(found[path])]
    return found


def write_tailored(text: str, *, folder: Path) -> None:
    """Write what of torch's generated functions and methods a source names.

    Args:
        text: the whole source; a name in a comment costs a little time, no more.
        folder: becomes an include folder.
    """
    index = json.loads((TOOLCHAIN / "index.json").read_text())
    switches = [f"#define {name} {int(bool(at.search(text)))}" for name, at in _SWITCHES.items()]
    words = set(_WORD.findall(text))
    standard = sorted({_HEADER_OF[word] for word in words & _HEADER_OF.keys()})
    methods = [index["methods"][name] for name in _named(_MEMBER, text, index["methods"])]
    called = _named(_CALLED, text, index["functions"])
    factories = [index["factories"][name] for name in called if name in index["factories"]]
    operators = sorted({header for method in methods for header in method["headers"]})
    _write(folder, "tailored.h", [*switches, *(f"#include <{name}>" for name in standard)])
    _write(folder, "tailored_methods.h", [method["declared"] for method in methods])
    _write(
        folder,
        "tailored_definitions.h",
        [
            *(f"#include <ATen/ops/{name}>" for name in operators),
            "namespace at {",
            *(method["defined"] for method in methods),
            "}",
        ],
    )
    _write(folder, "tailored_functions.h", [f"#include <ATen/ops/{name}.h>" for name in called])
    _write(folder, "tailored_factories.h", ["namespace torch {", *factories, "}"])


def _named(pattern: re.Pattern[str], text: str, known: Iterable[str]) -> list[str]:
    return sorted(set(pattern.findall(text)) & set(known))


def _write(folder: Path, name: str, lines: Iterable[str]) -> None:
    path = folder / "kopt_light" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#pragma once" if name != "tailored_methods.h" else "", *lines, ""]))


def _is_marked(name: str, mark: str) -> bool:
    return os.path.exists(name + mark)


def run(command: Sequence[str]) -> int:
    """Run a command with our own standard streams."""
    return subprocess.run(command, check=False).returncode


def run_all(commands: Iterable[Sequence[str]]) -> list[int]:
    """Run commands side by side."""
    started = [subprocess.Popen(command) for command in commands]
    return [process.wait() for process in started]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
