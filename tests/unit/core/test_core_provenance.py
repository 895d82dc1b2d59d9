"""Names to owners: what is the candidate's, a library's, torch's."""

from __future__ import annotations

import pytest

from kopt.provenance import Claims, identifiers, kernel_owner, mangled_names, operation_owner

NOBODYS = Claims()


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        ("void at::native::vectorized_elementwise_kernel<4, at::native::F>(int, F)", "aten"),
        ("void at::native::(anonymous namespace)::softmax_warp_forward<float>(float*)", "aten"),
        ("triton_poi_fused_add_relu_0", "aten"),
        ("triton_red_fused_mean_1", "aten"),
        ("Memcpy", "aten"),
        ("Memset", "aten"),
        ("ampere_sgemm_128x64_nn", "library"),
        ("volta_s884gemm_fp16_128x64_ldg8_f2f_nn", "library"),
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32", "library"),
        ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT", "library"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)", "library"),
        ("void gemv2T_kernel_val<int, float, cublasGemvTensor<float>>(float)", "library"),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float>(float*)", "library"),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, 512>(float*)", "library"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", "library"),
        ("void cub::DeviceReduceKernel<Policy, float*>(float*)", "library"),
        ("layer_norm_of_some_package", "library"),
    ],
)
def test_what_the_candidate_does_not_define_is_not_its_own(name, whose) -> None:
    assert kernel_owner(name, claims=NOBODYS) == whose


@pytest.mark.parametrize(
    "name",
    [
        "rows",
        "rows(float const*, float*, long)",
        "void mine::rows<float, 4>(float*)",
        "_Z4rowsPKfPfl",
        "_helion_rows",
        "kernel_cutlass_rows_tensorptrf32gmemo1_0",
    ],
)
def test_a_kernel_that_the_text_defines_is_the_candidates(name) -> None:
    assert kernel_owner(name, claims=Claims(names=frozenset({"rows"}))) == "user"


def test_a_kernel_is_its_own_whatever_generic_name_it_has() -> None:
    for name in ("gemm_kernel", "flash_attention", "hopper_gemm", "softmax_gemm"):
        claims = Claims(names=frozenset({name}))
        assert kernel_owner(name, claims=claims) == "user"


def test_inductors_kernel_copied_into_the_text_is_the_candidates() -> None:
    copied = Claims(names=frozenset({"triton_poi_fused_add_0"}))
    assert kernel_owner("triton_poi_fused_add_0", claims=copied) == "user"
    # Only named there, as torch.compile's cache names it: not defined.
    named = Claims(words=frozenset({"triton_poi_fused_add_0"}))
    assert kernel_owner("triton_poi_fused_add_0", claims=named) == "aten"


def test_a_template_of_a_library_built_into_the_candidate_is_its_own() -> None:
    name = "void cutlass::device_kernel<mine::Gemm>(mine::Gemm::Params)"
    built = Claims(symbols=frozenset({name}))
    assert kernel_owner(name, claims=built) == "user"
    other = "void cutlass::device_kernel<theirs::Gemm>(theirs::Gemm::Params)"
    assert kernel_owner(other, claims=built) == "library"


def test_a_namesake_does_not_make_a_closed_librarys_kernel_its_own() -> None:
    for name in ("ampere_sgemm_128x64_nn", "void at::native::reduce_kernel<512>(Op)"):
        claims = Claims(names=frozenset({"ampere_sgemm_128x64_nn", "reduce_kernel"}))
        assert kernel_owner(name, claims=claims) != "user"


def test_a_namesake_of_what_the_reference_runs_is_not_its_own() -> None:
    claims = Claims(names=frozenset({"splitk_gemm"}))
    assert kernel_owner("splitk_gemm", claims=claims) == "user"
    assert kernel_owner("splitk_gemm", claims=claims, elsewhere={"splitk_gemm"}) == "library"


def test_a_kernel_problem_and_its_candidate_may_name_theirs_alike() -> None:
    claims = Claims(names=frozenset({"rows"}))
    assert kernel_owner("rows", claims=claims, elsewhere={"rows"}) == "user"


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        ("aten::relu", "aten"),
        ("aten::add", "aten"),
        ("aten::mul", "aten"),
        ("inductor::compiled", "aten"),
        ("aten::mm", "library"),
        ("aten::addmm", "library"),
        ("aten::mkldnn_convolution", "library"),
        ("aten::linalg_vector_norm", "library"),
        ("mkldnn::_linear_pointwise", "library"),
        ("mine::scale", "user"),
        ("package::scale", "library"),
    ],
)
def test_operations_are_told_by_their_namespace(name, whose) -> None:
    claims = Claims(words=identifiers('TORCH_LIBRARY(mine, m) { m.def("scale", scale); }'))
    assert operation_owner(name, claims=claims) == whose


def test_mangled_names_of_a_binary_are_found_between_other_bytes() -> None:
    binary = b"\x7fELF\0\0_Z4rowsPKfPfl\0\x01\x02_ZN4mine4rowsIfEEvPT_\0_Z\0"
    assert sorted(mangled_names(binary)) == ["_Z4rowsPKfPfl", "_ZN4mine4rowsIfEEvPT_"]
