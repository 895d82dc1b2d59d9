"""Binaries as candidates leave them: cubins of Triton for sm_90, extensions of the host."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from kopt.actors.evidence.binaries import read_binaries
from kopt.tools.collect.host_code import vector_bits

SOURCES = Path(__file__).parents[3] / "golden" / "findings" / "planted_sources"
PRODUCT = {
    **dict.fromkeys(("a_ptr", "b_ptr", "out_ptr"), "*bf16"),
    **dict.fromkeys(("SIDE", "M", "K"), "constexpr"),
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))


def cubin(name, kernel, signature, constants, *, num_warps) -> bytes:
    """A planted kernel, compiled for Hopper without a GPU."""
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    spec = spec_from_file_location(f"planted_{name}", SOURCES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    aligned = {
        (at,): [["tt.divisibility", 16]]
        for at, kind in enumerate(signature.values())
        if kind.startswith("*")
    }
    source = ASTSource(
        fn=getattr(module, kernel), signature=signature, constexprs=constants, attrs=aligned
    )
    target = GPUTarget("cuda", 90, 32)
    return triton.compile(source, target=target, options={"num_warps": num_warps}).asm["cubin"]


def product(side, m, k, *, name, num_warps) -> bytes:
    return cubin(
        name, "product_kernel", PRODUCT, {"SIDE": side, "M": m, "K": k}, num_warps=num_warps
    )


def test_the_planted_product_of_an_older_generation_has_its_instructions(tmp_path) -> None:
    code = product(4096, 64, 32, name="hmma_on_hopper", num_warps=2)
    (tmp_path / "k.cubin").write_bytes(code)
    found = read_binaries(tmp_path, device="cuda")
    assert found.sass is not None
    assert found.sass.arch is not None
    assert found.sass.arch.startswith("sm_90")
    counts = found.sass.functions[0].counts
    assert counts["HMMA"] > 0
    assert "HGMMA" not in counts
    assert found.own == ("product_kernel",)
    assert found.usage[0].registers


def test_the_planted_product_without_tensor_cores_has_none(tmp_path) -> None:
    code = product(2048, 64, 16, name="no_tensor_cores", num_warps=8)
    (tmp_path / "k.cubin").write_bytes(code)
    found = read_binaries(tmp_path, device="cuda")
    assert found.sass is not None
    counts = found.sass.functions[0].counts
    assert counts["FFMA"] > 0
    assert not {"HMMA", "HGMMA"} & counts.keys()


def test_of_an_autotuner_s_variants_the_one_that_ran_is_told(tmp_path) -> None:
    small = product(4096, 32, 32, name="hmma_on_hopper", num_warps=2)
    large = product(4096, 64, 32, name="hmma_on_hopper", num_warps=2)
    for name, code in (("a", small), ("b", large)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "product_kernel.cubin").write_bytes(code)
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "k.cubin").write_bytes(large)
    expected = read_binaries(alone, device="cuda")
    assert expected.sass is not None
    shutil.rmtree(alone)
    ran = {"product_kernel": expected.usage[0].registers}
    found = read_binaries(tmp_path, device="cuda", launched=ran)
    assert found.sass is not None
    assert found.sass.functions == expected.sass.functions
    untold = read_binaries(tmp_path, device="cuda")
    assert untold.sass is not None
    assert untold.sass.functions[0].counts == {}
    assert untold.usage == ()


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump")
def test_a_host_extension_s_vectors_are_seen(tmp_path) -> None:
    code = tmp_path / "k.cpp"
    code.write_text(
        "#include <xmmintrin.h>\n"
        'extern "C" void add4(float* a, const float* b) {\n'
        "  _mm_storeu_ps(a, _mm_add_ps(_mm_loadu_ps(a), _mm_loadu_ps(b)));\n}\n"
    )
    library = str(tmp_path / "k.so")
    try:
        subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-o", library, str(code)], check=True)
    except subprocess.CalledProcessError:
        pytest.skip("not x86-64")
    found = read_binaries(tmp_path, device="cpu")
    assert found.host_code is not None
    (function,) = found.host_code.functions
    assert (function.name, vector_bits(function.counts)) == ("add4", 128)


def test_what_is_no_binary_is_named_and_passed_over(tmp_path) -> None:
    (tmp_path / "k.cubin").write_bytes(b"not a cubin")
    (tmp_path / "link.cubin").symlink_to("/etc/passwd")
    found = read_binaries(tmp_path, device="cuda")
    assert found.sass is None
    assert [remark.split(":")[0] for remark in found.remarks] == ["k.cubin"]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_nothing_built_is_nothing_read(tmp_path, device) -> None:
    assert read_binaries(tmp_path, device=device).remarks == ()
    assert read_binaries(None, device=device).own == ()
