"""What is said of the target: its hardware, and how to write each language that it takes."""

from __future__ import annotations

from kopt.candidate import Language
from kopt.ports import Target
from kopt.prompts.excerpts import fenced
from kopt.prompts.templates import example, filled

SHARED_KIB: dict[str, int] = {
    "70": 96,
    "75": 64,
    "80": 163,
    "86": 99,
    "87": 163,
    "89": 99,
    "90": 227,
    "100": 227,
    "103": 227,
    "120": 99,
}
"""Compute capability to the most shared memory of one block, in KiB (CUDA C++ Programming Guide,
technical specifications per compute capability)."""
REGISTERS = 65_536
"""32-bit registers of a multiprocessor, on every one of these."""
SPECIFIC: dict[str, str] = {"90": "`wgmma`", "100": "`tcgen05`", "103": "`tcgen05`"}
"""Compute capability to instructions that are compiled for its letter `a` only."""


def device_text(target: Target) -> str:
    """Return the section on the hardware."""
    if target.device == "cpu":
        return filled("device_cpu", name=target.name, arch=target.arch)
    capability = _capability(target)
    facts = ""
    if capability in SHARED_KIB:
        facts = (
            f"A block may use {SHARED_KIB[capability]} KiB of shared memory and 1024 threads; a "
            f"multiprocessor has {REGISTERS} registers."
        )
    return filled("device_cuda", name=target.name, arch=target.arch, facts=facts)


def languages_text(target: Target) -> str:
    """Return the section on the languages that can be built there, in the target's order."""
    guides = [_guide(language, target) for language in target.languages]
    return filled("languages", names=", ".join(target.languages), guides="\n\n".join(guides))


def _guide(language: Language, target: Target) -> str:
    match language:
        case "triton":
            return filled("triton", example=fenced(example("triton"), info="python"))
        case "cuda":
            return filled(
                "cuda",
                specific=_specific(target),
                example=fenced(example("cuda", arch_flag=_arch_flag(target)), info="python"),
            )
        case "cpp" if target.device == "cpu":
            return filled("cpp", example=fenced(example("cpp"), info="python"))
        case "cpp":
            return filled("cpp_host")
        case "torch" | "helion" | "cute":
            return filled(language)


def _capability(target: Target) -> str:
    """Return the digits of `sm_90`; empty where the architecture is written otherwise."""
    digits = target.arch.removeprefix("sm_")
    return digits if target.arch.startswith("sm_") and digits.isdigit() else ""


def _arch_flag(target: Target) -> str:
    return f"-arch={target.arch}" if _capability(target) else "-arch=native"


def _specific(target: Target) -> str:
    instructions = SPECIFIC.get(_capability(target))
    if instructions is None:
        return ""
    return f"\n- {instructions} needs `-arch={target.arch}a` in place of `-arch={target.arch}`."
