"""What the text of /proc/cpuinfo says of a CPU."""

from __future__ import annotations

from kopt.actors.devices.base import describe
from kopt.ports import Target
from kopt.processor import Processor, processor_of

X86 = "processor\t: 0\nmodel name\t: a CPU\nflags\t\t: fpu sse2 sse4_2 avx fma avx2 avx512f\n"


def test_extensions_of_simd_are_found_in_an_order_of_their_own() -> None:
    found = processor_of(f"{X86}\nprocessor\t: 1\nflags\t\t: fpu\n", threads=2)
    assert found == Processor(threads=2, simd=("sse4_2", "avx", "avx2", "fma", "avx512f"))
    assert found.vector_bits == 512
    assert processor_of(X86.replace(" avx512f", ""), threads=2).vector_bits == 256


def test_an_arm_says_its_features_and_not_how_long_its_vectors_are() -> None:
    plain = processor_of("Features\t: fp asimd asimdhp\n", threads=4)
    assert (plain.simd, plain.vector_bits) == (("asimd", "asimdhp"), 128)
    assert processor_of("Features\t: fp asimd sve\n", threads=4).vector_bits is None


def test_what_does_not_say_is_unknown() -> None:
    assert processor_of("", threads=None) == Processor()
    assert processor_of("x86_64", threads=None).vector_bits is None


def test_machines_that_differ_in_threads_are_one_kind_of_device() -> None:
    one, other = (
        Target(
            device="cpu",
            name="a CPU",
            arch="x86_64",
            languages=("torch",),
            processor=Processor(threads=threads),
        )
        for threads in (2, 64)
    )
    assert one == other
    assert hash(one) == hash(other)


def test_the_host_says_how_many_threads_a_call_may_use() -> None:
    processor = describe("cpu").processor
    assert processor is not None
    assert processor.threads is not None
    assert processor.threads >= 1
