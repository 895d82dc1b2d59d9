"""Instructions of a CPU extension's functions, from `objdump -d`: vector widths, multiply-adds.

Only functions of the candidate's own are counted: the glue to Python and what templates of the
standard library and of torch leave in a binary is passed over by name. Source: x86-64 and AArch64
mnemonics as GNU objdump spells them, in AT&T and Intel order alike: registers tell their names.
"""

from __future__ import annotations

import re

from kopt.tools.collect.sass import SassFunction, SassReport
from kopt.tools.collect.unreadable import MAX_KERNELS, Remarks, UnreadableProfile, bounded

SOURCE = "disassembly"

_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:\s*$")
_INSTRUCTION = re.compile(
    r"^\s*[0-9a-f]+:\s+(?:(?:lock|rep\w*|bnd|notrack)\s+)*([a-z][\w.]*)\s*(.*)$"
)
_ARCH = re.compile(r"file format \S*?(x86-64|aarch64|elf64-\S+)")
_FOREIGN = re.compile(
    r"(?:std|pybind11|torch|at|c10|__gnu_cxx)::|_GLOBAL_|_init$|_fini$|_start|__|PyInit|operator\b|"
    r"deregister_tm|register_tm|frame_dummy|guard$|non-virtual$|virtual$|vtable$|typeinfo$|_Z"
)
"""Beginnings of names that are not the candidate's own."""
_FMA = re.compile(r"^v?fn?m(?:add|sub)\w*$|^fmla$|^fmadd$")
_ARITHMETIC = re.compile(
    r"^v?(?:fn?m(?:add|sub)\w*|(?:add|sub|mul|div|sqrt|max|min)(?:ps|pd|ss|sd))$"
    r"|^f(?:add|sub|mul|div|mla|madd|max|min)$"
)
_SCALAR = re.compile(r"(?:ss|sd)$")
_WIDTHS = (("zmm", 512), ("ymm", 256), ("xmm", 128))
_NEON = re.compile(r"\bv\d+\.\d+[bhsd]")


def parse_host_code(text: str) -> SassReport:
    """Return the instruction counts of each function of the candidate's own in a disassembly.

    A count's name is the mnemonic; `mulps.ymm` counts those of `mulps` on registers of that width,
    `.scalar` those on one element.

    Args:
        text: output of `objdump -d -C --no-show-raw-insn`.

    Raises:
        UnreadableProfile: there is no instruction in it.
    """
    remarks = Remarks()
    functions: dict[str, dict[str, int]] = {}
    counts: dict[str, int] | None = None
    arch: str | None = None
    any_code = False
    for line in bounded(text, source=SOURCE).splitlines():
        named = _FUNCTION.match(line)
        if named is not None:
            counts = None if _is_foreign(named[1]) else functions.setdefault(named[1], {})
            continue
        instruction = _INSTRUCTION.match(line)
        if instruction is None:
            found = _ARCH.search(line)
            arch = arch or (found[1] if found else None)
            continue
        any_code = True
        if counts is not None:
            _count(counts, instruction[1], instruction[2])
    if not any_code:
        raise UnreadableProfile(SOURCE, "no function with instructions in the disassembly")
    kept = [
        SassFunction(name=name, counts=dict(sorted(c.items())))
        for name, c in functions.items()
        if c
    ]
    kept.sort(key=lambda function: -_num_arithmetic(function.counts))
    if len(kept) > MAX_KERNELS:
        remarks.note(f"only the first {MAX_KERNELS} of {len(kept)} functions are kept")
    return SassReport(functions=tuple(kept[:MAX_KERNELS]), arch=arch, remarks=remarks.lines())


def _is_foreign(function: str) -> bool:
    """Whether a function is glue or a library's: told by its path, without types and arguments."""
    if "@plt" in function or "pybind11" in function:
        return True
    path = re.split(r"[(<]", function.replace("(anonymous namespace)::", ""), maxsplit=1)[0]
    return bool(_FOREIGN.match(path.split()[-1] if path.split() else function))


def vector_bits(counts: dict[str, int]) -> int | None:
    """Return the greatest width that floating-point arithmetic works on, in bits.

    The greatest, since a loop over vectors leaves more instructions for its rest of elements than
    it has itself. 32 stands for one element at a time, whatever its size; None where there is no
    such arithmetic.
    """
    widths = [
        dict(_WIDTHS).get(form, 32)
        for mnemonic, _, form in (name.partition(".") for name in counts)
        if form and _ARITHMETIC.match(mnemonic)
    ]
    return max(widths, default=None)


def fma_share(counts: dict[str, int]) -> float | None:
    """Return the share of multiply-adds among the floating-point arithmetic, 0 to 1."""
    total = _num_arithmetic(counts)
    fused = sum(n for name, n in counts.items() if "." not in name and _FMA.match(name))
    return fused / total if total else None


def _num_arithmetic(counts: dict[str, int]) -> int:
    return sum(n for name, n in counts.items() if "." not in name and _ARITHMETIC.match(name))


def _count(counts: dict[str, int], mnemonic: str, operands: str) -> None:
    base = mnemonic.partition(".")[0]
    counts[base] = counts.get(base, 0) + 1
    form = _form(base, operands)
    if form:
        counts[f"{base}.{form}"] = counts.get(f"{base}.{form}", 0) + 1


def _form(mnemonic: str, operands: str) -> str:
    """The width that an instruction works on; empty where it is no floating-point arithmetic."""
    if not _ARITHMETIC.match(mnemonic):
        return ""
    if _SCALAR.search(mnemonic):
        return "scalar"
    for register, _ in _WIDTHS:
        if register in operands:
            return register
    return "xmm" if _NEON.search(operands) else "scalar"
