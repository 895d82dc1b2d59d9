import pytest

from kopt.compiled.output_code import read_output_code

TRITON = '''
async_compile = AsyncCompile()
_tensor_constant0 = None  # device(type='cuda', index=0) torch.float32 (8,) (1,)
triton_per_fused_mean_0 = async_compile.triton('triton_per_fused_mean_0', """
import triton
@triton_heuristics.persistent_reduction(size_hints={'x': 4, 'r0_': 8}, filename=__file__)
@triton.jit
def triton_per_fused_mean_0(in_ptr0, in_ptr1, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_ptr0 + r0_1)
    tl.store(out_ptr0 + x0, tmp4)
""", device_str='cuda')
triton_poi_fused_sub_1 = async_compile.triton('triton_poi_fused_sub_1', """
@triton_heuristics.pointwise(size_hints={'x': 32}, filename=__file__)
@triton.jit
def triton_poi_fused_sub_1(in_out_ptr0, in_ptr0, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_out_ptr0 + x2, xmask)
    tl.store(in_out_ptr0 + x2, tmp2, xmask)
""", device_str='cuda')
triton_tem_fused_mm_2 = async_compile.triton('triton_tem_fused_mm_2', """
@triton_heuristics.template(num_stages=2, num_warps=4)
@triton.jit
def triton_tem_fused_mm_2(arg_A, arg_B, out_ptr0):
    acc += tl.dot(a, b)
""", device_str='cuda')
async_compile.wait(globals())
del async_compile

class Runner:
    def __init__(self, partitions):
        self.partitions = partitions

    def call(self, args):
        arg0_1, arg1_1 = args
        args.clear()
        assert_size_stride(arg0_1, (4, 8), (8, 1), 'input')
        with torch.cuda._DeviceGuard(0):
            torch.cuda.set_device(0)
            buf0 = empty_strided_cuda((4, 8), (8, 1), torch.float32)
            extern_kernels.mm(arg0_1, reinterpret_tensor(arg1_1, (8, 8), (1, 8), 0), out=buf0)
            del arg1_1
            buf1 = empty_strided_cuda((4, 1), (1, 4), torch.float32)
            stream0 = get_raw_stream(0)
            triton_per_fused_mean_0.run(buf0, _tensor_constant0, buf1, 4, 8, stream=stream0)
            buf2 = buf0; del buf0  # reuse
            stream0 = get_raw_stream(0)
            triton_poi_fused_sub_1.run(buf2, buf1, 32, stream=stream0)
            del buf1
        return (buf2, )
runner = Runner(partitions=[])
call = runner.call
'''

CPP = '''
cpp_fused_norm_0 = async_compile.cpp_pybinding(['float*', 'const float*', 'float*'], r"""
extern "C"  void  kernel(float* in_out_ptr0,
                       const float* in_ptr0,
                       float* out_ptr1)
{
    auto out_ptr0 = in_out_ptr0;
    in_out_ptr0[static_cast<int64_t>(x0)] = static_cast<float>(tmp_acc0);
    auto tmp0 = in_out_ptr0[static_cast<int64_t>(x0)];
    tmp1.store(out_ptr1 + static_cast<int64_t>(x0));
}
""")
cpp_fused_add_1 = async_compile.cpp_pybinding(['float*', 'const float*'], r"""
extern "C"  void  kernel(float* in_out_ptr0,
                       const float* in_ptr0)
{
    auto tmp0 = at::vec::Vectorized<float>::loadu(in_out_ptr0 + static_cast<int64_t>(x0));
    tmp2.store(in_out_ptr0 + static_cast<int64_t>(x0));
}
""")
def call(args):
    arg0_1, = args
    args.clear()
    buf0 = empty_strided_cpu((4, ), (1, ), torch.float32)
    buf1 = empty_strided_cpu((4, ), (1, ), torch.float32)
    cpp_fused_add_1(buf0, arg0_1)
    buf2 = buf0; del buf0  # reuse
    cpp_fused_norm_0(buf2, arg0_1, buf1)
    cpp_fused_add_1(arg0_1, buf1)
    buf3 = empty_strided_cpu((8, ), (1, ), torch.float32)
    buf4 = reinterpret_tensor(buf3, (4, ), (1, ), 0)  # alias
    cpp_fused_add_1(buf4, buf1)
    return (buf2, buf3, )
'''


def test_kernels_are_told_apart_by_what_they_are() -> None:
    code = read_output_code(TRITON)
    kinds = {name: kernel.kind for name, kernel in code.kernels.items()}
    assert kinds == {
        "triton_per_fused_mean_0": "persistent_reduction",
        "triton_poi_fused_sub_1": "pointwise",
        "triton_tem_fused_mm_2": "template",
    }
    assert code.arguments == ("arg0_1", "arg1_1")
    assert code.constants == ("_tensor_constant0",)


def test_statements_in_a_device_guard_are_read_one_by_one() -> None:
    code = read_output_code(TRITON)
    assert [step.name for step in code.launches] == [
        "triton_per_fused_mean_0",
        "triton_poi_fused_sub_1",
    ]
    (product,) = code.library_calls
    assert product.name == "extern_kernels.mm"
    assert product.reads == ("arg0_1", "arg1_1")
    assert [write.variable for write in product.writes] == ["buf0"]
    assert code.results == ("buf2",)
    assert code.opaque == ""


def test_memory_handed_on_holds_the_value_of_before_until_it_is_written() -> None:
    mean, sub = read_output_code(TRITON).launches
    assert mean.reads == ("buf0", "_tensor_constant0")
    # buf2 is buf0's memory: what the second kernel reads there is buf0.
    assert sub.reads == ("buf0", "buf1")
    assert [(write.variable, write.own) for write in sub.writes] == [("buf2", True)]
    assert (sub.holders or {})["buf0"] == "buf2"


def test_a_kernel_that_writes_before_it_reads_takes_nothing_from_old_memory() -> None:
    code = read_output_code(CPP)
    assert code.kernels["cpp_fused_norm_0"].uses == ("out", "in", "out")
    assert code.kernels["cpp_fused_add_1"].uses == ("in_out", "in")
    fresh, norm, *_ = code.launches
    assert fresh.reads == ("arg0_1",)  # nothing lies in new memory
    assert norm.reads == ("arg0_1",)


def test_a_write_to_an_argument_and_to_a_part_of_a_tensor_is_not_a_variable_s_own() -> None:
    *_, argument, part = read_output_code(CPP).launches
    (changed,) = argument.writes
    assert changed.of_caller
    assert not changed.own
    (alias,) = part.writes
    assert alias.variable == "buf4"
    assert not alias.own
    assert not alias.of_caller


def test_control_flow_in_the_output_code_is_said_and_not_guessed() -> None:
    text = (
        "def call(args):\n    arg0_1, = args\n    if arg0_1:\n        pass\n    return (arg0_1, )\n"
    )
    assert read_output_code(text).opaque == "a If stands in the output code"


def test_text_without_a_call_is_refused() -> None:
    with pytest.raises(ValueError, match="has no call"):
        read_output_code("x = 1")
    with pytest.raises(ValueError, match="does not parse: line 1"):
        read_output_code("def (")
