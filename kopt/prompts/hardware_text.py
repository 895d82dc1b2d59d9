"""The target's hardware in words: what its author would have to know by heart otherwise.

Facts of an architecture come from `kopt.tools.architectures`, those of one GPU from
`kopt.tools.hardware`; of an unknown one nothing is told (KernelPro §3.2.2, GPU-aware injection).
"""

from __future__ import annotations

from kopt.ports import Target
from kopt.processor import Processor
from kopt.prompts.templates import filled
from kopt.tools.architectures import ARCHITECTURES, Architecture
from kopt.tools.hardware import VECTOR, Gpu, find_gpu


def device_text(target: Target) -> str:
    """Return the section on the hardware, and on the software that drives it."""
    installed = _installed(target)
    if target.device == "cpu":
        processor = target.processor or Processor()
        return filled(
            "device_cpu",
            name=target.name,
            arch=target.arch,
            simd=_simd(processor),
            threads=_threads(processor),
            installed=installed and f" {installed}",
        )
    gpu, architecture = find_gpu(target.name), ARCHITECTURES.get(target.arch)
    facts = [
        "" if gpu is None else _peaks(gpu),
        "" if architecture is None else _multiprocessor(architecture),
        "" if architecture is None else _instructions(architecture),
    ]
    lines = "\n".join(f"- {fact}" for fact in facts if fact)
    return filled(
        "device_cuda",
        name=target.name,
        arch=target.arch,
        facts=lines and f"\n{lines}\n",
        installed=installed and f"{installed} ",
    )


def compile_flag(target: Target) -> str:
    """Return the flag that names the target to nvcc."""
    return f"-arch={target.arch}" if target.arch.startswith("sm_") else "-arch=native"


def own_flag(target: Target) -> str:
    """Return the flag that gives the architecture's own instructions too; empty for none."""
    architecture = ARCHITECTURES.get(target.arch)
    if architecture is None or not architecture.compile_name:
        return ""
    return f"-arch={architecture.compile_name}"


def _threads(processor: Processor) -> str:
    number = processor.threads
    if number is None:
        return "all threads that `torch.get_num_threads()` gives, which is also what OpenMP starts"
    if number == 1:
        return "one thread"
    return f"{number} threads, which is what `torch.get_num_threads()` gives and OpenMP starts"


def _simd(processor: Processor) -> str:
    if not processor.simd:
        return ""
    bits = processor.vector_bits
    width = f", in vectors of up to {bits} bits ({bits // 32} float32)" if bits else ""
    return f" SIMD: {', '.join(processor.simd)}{width}."


def _installed(target: Target) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in target.versions)
    return f"Installed are {versions}." if versions else ""


def _peaks(gpu: Gpu) -> str:
    peaks = ", ".join(
        f"{precision} {tflops:g}{' (no matrix unit)' if precision in VECTOR else ''}"
        for precision, tflops in gpu.tflops.items()
    )
    reached = f" ({gpu.reached_tb_per_s:g} reached)" if gpu.reached_tb_per_s else ""
    return (
        f"{gpu.num_sms} multiprocessors, {gpu.l2_mib:g} MiB of L2 cache, {gpu.tb_per_s:g} TB/s of "
        f"memory bandwidth{reached}; peaks in TFLOP/s: {peaks}."
    )


def _multiprocessor(architecture: Architecture) -> str:
    return (
        f"A multiprocessor has {architecture.smem_kib} KiB of shared memory (a block may use "
        f"{architecture.block_smem_kib}), {architecture.registers} registers (at most 255 a "
        f"thread) and room for {architecture.threads} threads (1024 a block)."
    )


def _instructions(architecture: Architecture) -> str:
    sentences = []
    if architecture.warp_mma:
        sentences.append(f"Matrix instructions: `mma.sync` {', '.join(architecture.warp_mma)}.")
    if architecture.group_mma:
        sentences.append(f"{architecture.group_mma}.")
    if architecture.copies:
        sentences.append(architecture.copies)
    return " ".join(sentences)
