"""One native text, read for the rules: what it declares, what its names are, what is certain."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property

from kopt.cutlass.native_text import NativeText
from kopt.cutlass.scopes import Scan, blanked, split_top

BITS: dict[str, int] = {
    **dict.fromkeys(("int8_t", "uint8_t", "char", "float_e4m3_t", "float_e5m2_t"), 8),
    **dict.fromkeys(("int16_t", "uint16_t", "half_t", "bfloat16_t", "__half", "__nv_bfloat16"), 16),
    **dict.fromkeys(("int32_t", "uint32_t", "int", "float", "tfloat32_t"), 32),
    **dict.fromkeys(("int64_t", "uint64_t", "double", "float2", "int2", "uint2"), 64),
    **dict.fromkeys(("uint128_t", "float4", "int4", "uint4"), 128),
}
"""Bits of the types that CuTe's and CUDA's headers define, by their unqualified names."""
MAX_ARGUMENTS = 2_000
"""Characters of a list of arguments; longer ones are left to the compiler."""
_QUALIFIERS = ("cute::", "cutlass::", "std::", "::")
_DECLARED = re.compile(
    r"\b(?:struct|class|union|enum|using|typename|typedef|concept)\s+(\w+)|#\s*define\s+(\w+)"
    r"|\btypedef\b[^;]*?(\w+)\s*;|\busing\s+(?:\w+::)+(\w+)\s*;"
)
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]{0,3}")
_CONSTANT = re.compile(
    r"\bconstexpr\s+(?:static\s+)?(?:const\s+)?(?:int|unsigned|auto|size_t|u?int32_t|u?int64_t)"
    r"\s+(\w+)\s*=\s*([0-9]+)\s*;"
)
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=\s*([^;{}]+);")
_INCLUDES = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<(?:cute|cutlass)/", re.MULTILINE)
_OWN = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"', re.MULTILINE)
_CARRIERS = re.compile(r"(?:cute::)?(?:Copy_Atom|MMA_Atom|TiledMMA)\s*<\s*\Z")


class Reading:
    """A text with its comments and strings blanked; places are those of the text itself."""

    def __init__(self, native: NativeText) -> None:
        """Read it."""
        self.text = native.text
        self.place = native.place
        self.code = blanked(native.text)
        self.scan = Scan(native.text)
        self._times_declared: dict[str, int] = {}
        self.includes_cutlass = _INCLUDES.search(self.text) is not None
        self.includes_own = _OWN.search(self.text) is not None
        """Headers in quotes may be the candidate's own, and declare anything."""

    @cached_property
    def declared(self) -> frozenset[str]:
        """Names that the text gives a meaning of its own."""
        names = {name for match in _DECLARED.finditer(self.code) for name in match.groups() if name}
        return frozenset(names | {scope.name for scope in self.scan.opened if scope.name})

    def is_uncertain(self, at: int, *, inside: bool = False) -> bool:
        """Return whether a place may never be compiled.

        Args:
            at: the place.
            inside: whether what stands there matters only where its function is instantiated.
        """
        if any(start <= at < end for start, end in self.scan.branches):
            return True
        line = self.code[self.code.rfind("\n", 0, at) + 1 : at]
        if line.lstrip().startswith("#") and "include" not in line + self.code[at : at + 40]:
            return True  # in a macro, which may not be used
        if "\\\n" in self.code[max(0, at - 400) : at]:
            return True  # perhaps in the later lines of one
        if not inside:
            return False
        for start, end, scope in self.scan.spans:
            if not start <= at < end:
                continue
            if "if constexpr" in self.code[start:at]:
                return True
            if scope.parameters is not None and not self._is_used(scope.name):
                return True
        return False

    def arguments(self, start: int, *, closing: str = ">") -> tuple[list[str] | None, int]:
        """Return the arguments between brackets that are open, and the place behind them."""
        depth, at = 1, start
        opening = "<" if closing == ">" else "("
        last = min(len(self.code), start + MAX_ARGUMENTS)
        while at < last and depth:
            character = self.code[at]
            if closing == ">" and character in ";&|":
                return None, at  # a comparison
            depth += (character == opening) - (character == closing)
            at += 1
        if depth:
            return None, at
        return split_top(" ".join(self.code[start : at - 1].split())), at

    def completes(self, start: int, end: int, *, is_function: bool) -> bool:
        """Return whether a template-id between two places is certain to be instantiated."""
        after = self.code[end:].lstrip()[:2]
        if is_function:
            return after[:1] == "("
        if after[:1] == "{" or after == "::":
            return True
        carrier = _CARRIERS.search(self.code, 0, start)
        if carrier is None:
            return False
        _, behind = self.arguments(carrier.end())
        if self.code[behind:].lstrip()[:1] in ("{", "("):
            return True
        alias = re.search(r"\busing\s+(\w+)\s*=\s*\Z", self.code[: carrier.start()])
        return alias is not None and self._is_used(alias[1])

    def number(self, text: str) -> int | None:
        """Return the number that a literal or a constant of this text stands for."""
        found = _NUMBER.fullmatch(text.strip())
        if found and not _is_octal(found[1]):
            return int(found[1], 0)
        name = text.strip()
        value = self._constants.get(name)
        return None if value is None or self._declarations(name) != 1 else value

    def bits(self, text: str) -> int | None:
        """Return the bits of a type that is known; None for one of this text's own."""
        name = text.strip()
        for qualifier in _QUALIFIERS:
            name = name.removeprefix(qualifier)
        return None if name in self.declared else BITS.get(name)

    def resolved(self, text: str) -> str:
        """Return what an alias of this text stands for; any other text as it is."""
        found = self._aliases.get(text)
        return text if found is None or self._declarations(text) != 1 else found

    @cached_property
    def _words(self) -> Counter[str]:
        return Counter(re.findall(r"\w+", self.code))

    @cached_property
    def _constants(self) -> dict[str, int]:
        return {
            match[1]: int(match[2])
            for match in _CONSTANT.finditer(self.code)
            if not _is_octal(match[2])
        }

    @cached_property
    def _aliases(self) -> dict[str, str]:
        return {match[1]: " ".join(match[2].split()) for match in _ALIAS.finditer(self.code)}

    def _declarations(self, name: str) -> int:
        """How often a name stands where it may be declared; too often rather than too seldom."""
        if name in self._times_declared:
            return self._times_declared[name]
        pattern = rf"(?:\b(?!return\b|else\b|case\b|new\b|throw\b)\w+|[>&*])\s+{re.escape(name)}\b"
        times = self._times_declared[name] = len(re.findall(pattern, self.code))
        return times

    def _is_used(self, name: str) -> bool:
        return self._words[name] > 1


def _is_octal(digits: str) -> bool:
    return len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
