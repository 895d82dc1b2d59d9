"""Disassemblies and resource usage: counts, padding, spills, names."""

from __future__ import annotations

from pathlib import Path

import pytest

from kopt.tools.collect.owners import base_name, owner
from kopt.tools.collect.sass import parse_sass
from kopt.tools.collect.unreadable import UnreadableProfile
from kopt.tools.collect.usage import parse_usage

RECORDED = Path(__file__).parents[2] / "golden" / "findings" / "recorded"

CUOBJDUMP = """\
\tcode for sm_90a
\t\tFunction : _Z4gemmPf
\t.headerflags\t@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;   /* 0x00000a00ff017b82 */
                                                            /* 0x000fe20000000800 */
        /*0010*/              @!P4 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0020*/              @!PT LDG.E R4, desc[UR4][R2.64] ;
        /*0030*/             @UP1  UTMALDG.2D [UR8], [UR4] ;
        /*0040*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24 ;
        /*0050*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24, gsb0 ;
        /*0060*/                   STL.64 [R1+0x8], R4 ;
        /*0070*/                   LDL R5, [R1+0x8] ;
        /*0080*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0090*/               @P0 EXIT ;
        /*00a0*/                   STG.E.128 desc[UR4][R2.64], R4 ;
        /*00b0*/                   EXIT ;
.L_x_0:
        /*00c0*/                   BRA `(.L_x_0);
        /*00d0*/                   NOP;
        /*00e0*/                   NOP;
\t\tFunction : tail
        /*0000*/                   FADD R1, R2, R3 ;
        /*0010*/                   EXIT ;
"""


def test_instructions_are_counted_by_mnemonic_and_by_width() -> None:
    report = parse_sass(CUOBJDUMP)
    gemm, tail = report.functions
    assert report.arch == "sm_90a"
    assert gemm.counts == {
        "BAR": 1,
        "BAR.SYNC": 1,
        "BRA": 1,
        "EXIT": 2,
        "HGMMA": 2,
        "LDC": 1,
        "LDG": 2,
        "LDG.128": 1,
        "LDL": 1,
        "STG": 1,
        "STG.128": 1,
        "STL": 1,
        "STL.64": 1,
        "UTMALDG": 1,
    }
    assert tail.counts == {"EXIT": 1, "FADD": 1}


def test_padding_after_the_last_jump_is_no_code() -> None:
    assert parse_sass(CUOBJDUMP).functions[0].num_instructions == 13


def test_the_recorded_disassembly_loads_wide() -> None:
    (function,) = parse_sass((RECORDED / "exp.sass.txt").read_text()).functions
    assert function.name == "k"
    assert (function.counts["LDG"], function.counts["LDG.128"]) == (2, 2)
    assert function.counts["MUFU.EX2"] == 8
    assert "NOP" not in function.counts


def test_nvdisasm_has_labels_in_place_of_headings_and_data_beside_code() -> None:
    text = """\
\t.target\tsm_90a
\t.section\t.nv.info,"",@"SHT_CUDA_INFO"
        /*0000*/ \t.byte\t0x04, 0x2f
\t.section\t.text.scale,"ax",@progbits
.text.scale:
        /*0000*/                   FMUL R1, R2, R3 ;
        /*0010*/                   EXIT ;
\t.section\t.nv.constant0.scale,"a",@progbits
        /*0000*/ \t.word\t0x00000000
"""
    (function,) = parse_sass(text).functions
    assert (function.name, function.counts) == ("scale", {"EXIT": 1, "FMUL": 1})


def test_a_disassembly_that_is_cut_off_is_told() -> None:
    cut = CUOBJDUMP[: CUOBJDUMP.index("        /*0090*/")]
    report = parse_sass(cut)
    assert report.functions[0].counts["HGMMA"] == 2
    assert report.remarks == ("_Z4gemmPf has no exit: the disassembly is cut off",)


@pytest.mark.parametrize(
    "text", ["", "cuobjdump info : File 'x.so' does not contain device code", "int main() {}"]
)
def test_text_without_instructions_is_named(text) -> None:
    with pytest.raises(UnreadableProfile, match="SASS: "):
        parse_sass(text)


def test_usage_as_cuobjdump_says_it() -> None:
    (usage,) = parse_usage((RECORDED / "exp.res_usage.txt").read_text())
    assert (usage.name, usage.registers, usage.stack_bytes) == ("k", 17, 0)
    assert usage.spill_bytes is None  # a stack of spills and one of arrays look the same here


def test_usage_as_ptxas_says_it_tells_spills_from_local_arrays() -> None:
    text = """\
ptxas info    : Compiling entry function '_Z5spillPf' for 'sm_90a'
ptxas info    : Function properties for _Z5spillPf
    4608 bytes stack frame, 9000 bytes spill stores, 12000 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem
ptxas info    : Compiling entry function '_Z5arrayPf' for 'sm_90a'
ptxas info    : Function properties for _Z5arrayPf
    400 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 0 barriers
"""
    spill, array = parse_usage(text)
    assert (spill.registers, spill.stack_bytes, spill.spill_bytes) == (255, 4608, 21_000)
    assert spill.smem_bytes == 1024
    assert (array.registers, array.stack_bytes, array.spill_bytes) == (40, 400, 0)


def test_usage_of_nothing_is_named() -> None:
    with pytest.raises(UnreadableProfile, match="resource usage: names no function"):
        parse_usage("nvcc fatal: no input files\n")


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("k", "k"),
        ("_Z1kPf", "k"),
        ("_ZN2ns5scaleIfEEvPT_i", "scale"),
        ("_ZN12_GLOBAL__N_14gemmEPf", "gemm"),
        ("void ns::scale<float, (int)4>(float*, int)", "scale"),
        ("void (anonymous namespace)::gemm(float*)", "gemm"),
        ("triton_red_fused_0", "triton_red_fused_0"),
        ("", ""),
        ("_Z", "_Z"),
        ("_Z9999x", "x"),
    ],
)
def test_the_own_name_of_a_function(name, base) -> None:
    assert base_name(name) == base


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n", "library"),
        ("nvjet_hsh_128x256_64x4_2x1_v_bz_TNT", "library"),
        ("void cutlass::Kernel2<cutlass_80_wmma>(Params)", "library"),
        ("void at::native::vectorized_elementwise_kernel<4, F>(int, F)", "aten"),
        ("void at::vectorized_elementwise_kernel<4, at::AbsFunctor<float>>(int, T2)", "aten"),
        ("void (anonymous namespace)::index_kernel<int, at::native::arange>(int)", "aten"),
        ("_ZN2at6native13reduce_kernelILi512EEEvT_", "aten"),
        ("scale(at::GenericPackedTensorAccessor<float, 2>)", "user"),
        ("void (anonymous namespace)::scale<4>(at::PackedTensorAccessor<float>)", "user"),
        ("format::scale(float*)", "user"),
        ("triton_poi_fused_relu_0", "user"),
        ("my_kernel", "user"),
    ],
)
def test_whose_a_kernel_is_by_its_name(name, whose) -> None:
    assert owner(name) == whose


def test_the_candidate_s_own_names_go_before_the_form_of_a_name() -> None:
    assert owner("my_gemm_kernel") == "library"
    assert owner("void my_gemm_kernel<4>(float*)", own=("_Z14my_gemm_kernelPf",)) == "user"
    assert owner("cublasLt_split", own=("my_gemm_kernel",)) == "library"
