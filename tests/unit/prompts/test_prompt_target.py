"""What is said of the hardware and of the languages' packages."""

from __future__ import annotations

import dataclasses

import pytest

from kopt.api import Api
from kopt.ports import Target
from kopt.processor import Processor
from kopt.prompts.api_text import MAX_SIGNATURE, api_text
from kopt.prompts.hardware_text import device_text
from kopt.prompts.target_text import languages_text
from kopt.tools.architectures import ARCHITECTURES
from kopt.tools.hardware import GPUS

API = Api(
    language="triton",
    package="triton",
    version="9.8.7",
    signatures=tuple(f"tl.f{number}(x, y=None)" for number in range(10)),
    names=tuple(f"tl.n{number}" for number in range(10)),
)


def gpu(arch: str, name: str = "a GPU") -> Target:
    return Target(device="cuda", name=name, arch=arch, languages=("triton", "cuda"))


def test_a_hopper_is_told_with_its_own_instructions() -> None:
    text = device_text(gpu("sm_90", "NVIDIA H200"))
    for words in (
        "132 multiprocessors",
        "4.8 TB/s of memory bandwidth (4.3 reached)",
        "228 KiB of shared memory (a block may use 227)",
        "m64nNk16 fp16/bf16",
        "m16n8k8 tf32",
        "TMA",
        "tf32 494.7",
    ):
        assert words in text
    assert "-arch=sm_90a` in place of `-arch=sm_90`" in languages_text(gpu("sm_90"))


@pytest.mark.parametrize("arch", sorted(ARCHITECTURES))
def test_no_architecture_is_told_instructions_of_another(arch) -> None:
    text = device_text(gpu(arch))
    assert ("wgmma" in text) == (arch == "sm_90")
    assert ("tcgen05" in text) == (arch in ("sm_100", "sm_103"))
    assert ("TMA" in text) == (arch in ("sm_90", "sm_100", "sm_103", "sm_120"))
    assert ("fp8" in text) == (arch in ("sm_89", "sm_90", "sm_100", "sm_103", "sm_120"))
    assert "multiprocessors, " not in text, "an unknown GPU of a known architecture"
    own = ARCHITECTURES[arch].compile_name
    assert (own != "") == ("Instructions of this architecture" in languages_text(gpu(arch)))


@pytest.mark.parametrize("arch", ["sm_61", "sm_999", "gfx1100", "", "cuda"])
def test_an_unknown_architecture_is_told_no_figure(arch) -> None:
    text = device_text(gpu(arch))
    assert "KiB" not in text
    assert "mma" not in text
    assert "cold L2 cache" in text


def test_a_cpu_is_told_nothing_of_gpus() -> None:
    text = device_text(Target(device="cpu", name="H200", arch="sm_90", languages=("cpp",)))
    assert "KiB" not in text


def test_a_cpu_is_told_with_its_threads_and_vectors_as_far_as_they_are_known() -> None:
    bare = Target(device="cpu", name="a CPU", arch="x86_64", languages=("cpp",))
    known = dataclasses.replace(bare, processor=Processor(threads=8, simd=("avx", "avx2", "fma")))
    assert device_text(known).startswith(
        "## Device\n\nCPU: a CPU (x86_64). SIMD: avx, avx2, fma, in vectors of up to 256 bits "
        "(8 float32). A call may use 8 threads, which is what `torch.get_num_threads()` gives and "
        "OpenMP starts; nothing else"
    )
    alone = dataclasses.replace(bare, processor=Processor(threads=1, simd=("asimd", "sve")))
    assert "SIMD: asimd, sve. A call may use one thread; nothing" in device_text(alone)
    for unknown in (bare, dataclasses.replace(bare, processor=Processor())):
        text = device_text(unknown)
        assert "SIMD" not in text
        assert "may use all threads that `torch.get_num_threads()` gives" in text


def test_every_gpu_of_the_table_is_of_a_known_architecture() -> None:
    assert {each.arch for each in GPUS} <= set(ARCHITECTURES)
    for each in ARCHITECTURES.values():
        assert each.block_smem_kib <= each.smem_kib
        assert each.compile_name in ("", f"{each.name}a")


def test_the_flag_of_an_architecture_names_its_own_instructions() -> None:
    assert ARCHITECTURES["sm_90"].gencode == "-gencode=arch=compute_90a,code=sm_90a"
    assert ARCHITECTURES["sm_80"].gencode == "-gencode=arch=compute_80,code=sm_80"


def test_signatures_come_first_then_names_then_a_count() -> None:
    text = api_text(API, max_characters=400)
    assert text.startswith("Signatures of triton 9.8.7, as installed:\n\n```\ntl.f0(x, y=None)\n")
    assert text.endswith("tl.n0, tl.n1, tl.n2, tl.n3, tl.n4, tl.n5, tl.n6, tl.n7, tl.n8, tl.n9")
    assert len(text) <= 400


@pytest.mark.parametrize("most", [0, 50, 80, 120, 200, 300, 1_000])
def test_an_appendix_keeps_to_its_bound_and_says_what_it_leaves_out(most) -> None:
    text = api_text(API, max_characters=most)
    assert len(text) <= most
    shown = text.count("(x, y=None)")
    if 0 < shown < 10 and "Also" in text and f"tl.f{shown}" in text and "tl.n9" not in text:
        assert "more" in text
    if not shown:
        assert text == ""


def signature_as_told(signature: str) -> str:
    text = api_text(dataclasses.replace(API, signatures=(signature,)), max_characters=1_000)
    return text.split("\n")[3]


def test_a_long_signature_loses_its_last_parameters_visibly() -> None:
    long = "tl.f(" + ", ".join(f"parameter_{number}=None" for number in range(30)) + ")"
    line = signature_as_told(long)
    assert line.startswith("tl.f(parameter_0, parameter_1, ")
    assert line.endswith(", …)")
    assert len(line) <= MAX_SIGNATURE + len(", …)")


def test_a_long_signature_loses_its_defaults_before_any_parameter() -> None:
    first = "tl.load(pointer, mask=None, boundary_check=(), tile=(16, 16), steps=[1, 2]"
    long = f"{first}, padding_option='a, b', eviction_policy='', volatile=False, *, other=0)"
    assert len(long) > MAX_SIGNATURE
    assert signature_as_told(long) == (
        "tl.load(pointer, mask, boundary_check, tile, steps, padding_option, eviction_policy, "
        "volatile, *, other)"
    )


def test_a_short_signature_keeps_its_defaults() -> None:
    assert signature_as_told("tl.f(x, axis=None, pad='')") == "tl.f(x, axis=None, pad='')"


def test_languages_share_the_room_and_what_one_leaves_goes_to_the_next() -> None:
    helion = dataclasses.replace(
        API,
        language="helion",
        package="helion",
        signatures=tuple(f"hl.f{number:03}(x, y=None)" for number in range(200)),
    )
    target = dataclasses.replace(
        gpu("sm_90"), languages=("triton", "helion", "torch"), apis=(API, helion)
    )
    plain = languages_text(dataclasses.replace(target, apis=()), api_characters=2_000)
    both = languages_text(target, api_characters=2_000)
    assert "Signatures" not in plain
    assert "Signatures of triton 9.8.7" in both
    assert both.index("Signatures of triton") < both.index("### helion")
    assert both.index("### helion") < both.index("Signatures of helion") < both.index("### torch")
    added = len(both) - len(plain)
    assert 1_700 < added <= 2_000 + len("\n\n\n\n")
    # Triton needs about 400 of its 1,000: Helion has more than the other half.
    assert both[both.index("Signatures of helion") :].count("(x, y=None)") > 1_000 // 25


def test_a_language_that_is_not_offered_gets_no_appendix() -> None:
    target = dataclasses.replace(gpu("sm_90"), languages=("cuda", "torch"), apis=(API,))
    assert "Signatures" not in languages_text(target, api_characters=2_000)


def test_triton_authors_are_told_how_float32_products_and_tile_copies_are_had() -> None:
    target = Target(device="cuda", name="NVIDIA H200", arch="sm_90", languages=("triton",))
    text = languages_text(target)
    assert '`"tf32x3"`' in text
    assert "TensorDescriptor.from_tensor(tensor, block_shape)" in text
    assert "`triton.set_allocator`" in text
