"""One evidence from several profilers: whose figures count, what is ambiguous, what is left out."""

from __future__ import annotations

from kopt.evidence import Timeline
from kopt.tools.collect.assemble import Collected, assemble
from kopt.tools.collect.kineto import TracedKernel, TraceReport
from kopt.tools.collect.ncu_raw import NcuLaunch, NcuReport
from kopt.tools.collect.sass import SassFunction, SassReport
from kopt.tools.collect.usage import Usage

TIME = "gpu__time_duration.sum"


def launch(ordinal: int, kernel: str = "k", *, grid: str = "(8, 1, 1)", **metrics) -> NcuLaunch:
    named = {TIME: metrics.pop("time_ns", 1000.0), **metrics}
    return NcuLaunch(ordinal=ordinal, kernel=kernel, block="(128, 1, 1)", grid=grid, metrics=named)


def traced(name: str, *, launches: int = 1, time_us: float = 1.0, share: float) -> TracedKernel:
    return TracedKernel(name=name, owner="user", launches=launches, time_us=time_us, share=share)


def put(**parts):
    return assemble(Collected(device="NVIDIA H200", arch="sm_90", **parts))


def test_launches_of_one_kernel_are_one_and_its_counters_their_mean() -> None:
    report = NcuReport(launches=(launch(0, reads=1.0), launch(1, time_ns=3000.0, reads=2.0)))
    (kernel,) = put(ncu=report).evidence.kernels
    assert (kernel.launches, kernel.time_us, kernel.share) == (2, 4.0, 1.0)
    assert kernel.metrics == {TIME: 2000.0, "reads": 1.5}


def test_a_profile_of_several_calls_counts_the_launches_of_one() -> None:
    report = NcuReport(launches=(launch(0), launch(1)))
    (kernel,) = put(ncu=report, ncu_calls=2).evidence.kernels
    assert (kernel.launches, kernel.time_us) == (1, 1.0)


def test_a_counter_that_one_launch_lacks_is_unknown() -> None:
    report = NcuReport(launches=(launch(0, reads=1.0), launch(1, reads=None)))
    (kernel,) = put(ncu=report).evidence.kernels
    assert kernel.metrics["reads"] is None


def test_one_name_with_two_grids_is_two_kernels() -> None:
    report = NcuReport(launches=(launch(0), launch(1, grid="(1, 1, 1)", time_ns=3000.0)))
    kernels = put(ncu=report).evidence.kernels
    assert [(kernel.name, kernel.share) for kernel in kernels] == [("k", 0.25), ("k", 0.75)]


def test_without_times_shares_are_unknown() -> None:
    report = NcuReport(launches=(launch(0, time_ns=None), launch(1, "j")))
    assert [kernel.share for kernel in put(ncu=report).evidence.kernels] == [None, None]


def test_the_timeline_knows_shares_and_kernels_that_ncu_did_not_see() -> None:
    trace = TraceReport(
        timeline=Timeline(e2e_us=10.0),
        kernels=(traced("gemm", time_us=6.0, share=0.75), traced("k", time_us=2.0, share=0.25)),
        num_calls=1,
    )
    evidence = put(
        ncu=NcuReport(launches=(launch(0, "void k<int>(float*)"),)), trace=trace
    ).evidence
    assert [(each.name, each.share) for each in evidence.kernels] == [
        ("void k<int>(float*)", 0.25),
        ("gemm", 0.75),
    ]
    assert evidence.kernels[0].metrics
    assert evidence.kernels[1].metrics == {}
    assert evidence.level == "ncu"


def test_levels_follow_from_what_was_there() -> None:
    trace = TraceReport(
        timeline=Timeline(e2e_us=10.0), kernels=(traced("k", share=1.0),), num_calls=1
    )
    sass = SassReport(functions=(SassFunction(name="k", counts={"EXIT": 1}),))
    assert put(trace=trace).evidence.level == "timeline"
    static = put(sass=sass).evidence
    assert (static.level, static.kernels[0].name) == ("static", "k")
    assert put().evidence.kernels == ()


def test_binaries_are_found_by_mangled_name_and_by_the_function_s_own() -> None:
    sass = SassReport(functions=(SassFunction(name="_ZN2ns1kIfEEvPT_", counts={"LDG": 3}),))
    usage = (Usage(name="_ZN2ns1kIfEEvPT_", registers=40, stack_bytes=8, spill_bytes=16),)
    report = NcuReport(launches=(launch(0, "void ns::k<float>(float*)"),))
    (kernel,) = put(ncu=report, sass=sass, usage=usage).evidence.kernels
    assert kernel.sass == {"LDG": 3}
    assert (kernel.registers, kernel.stack_bytes, kernel.spill_bytes) == (40, 8, 16)


def test_a_binary_that_may_be_either_is_left_out_and_told() -> None:
    functions = tuple(
        SassFunction(name=name, counts={"LDG": 1}) for name in ("_Z1kIfEvPT_", "_Z1kIdEvPT_")
    )
    report = NcuReport(launches=(launch(0, "void k<float>(float*)"),))
    put_together = put(ncu=report, sass=SassReport(functions=functions))
    assert put_together.evidence.kernels[0].sass == {}
    assert put_together.remarks == ("2 functions are called k: their disassembly is left out",)


def test_the_candidate_s_own_names_decide_whose_a_kernel_is() -> None:
    report = NcuReport(launches=(launch(0, "fused_gemm_epilogue"),))
    assert put(ncu=report).evidence.kernels[0].owner == "library"
    assert put(ncu=report, own=("fused_gemm_epilogue",)).evidence.kernels[0].owner == "user"


def test_energy_is_worked_out_where_its_counters_are_there() -> None:
    assert put(ncu=NcuReport(launches=(launch(0),))).evidence.energy is None
    counted = {
        "dram__bytes_read.sum": 1.0,
        "dram__bytes_write.sum": 1.0,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 0.0,
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 0.0,
        "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": 0.0,
        "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": 0.0,
        "smsp__inst_executed.sum": 10.0,
    }
    energy = put(ncu=NcuReport(launches=(launch(0, **counted),))).evidence.energy
    # 20 · 2 + 3 · 10.
    assert (energy.proxy_pj, energy.corrected_pj) == (70.0, 70.0)


def test_remarks_of_all_parsers_are_handed_on() -> None:
    report = NcuReport(launches=(launch(0),), remarks=("a row was dropped",))
    sass = SassReport(functions=(), remarks=("cut off",))
    assert put(ncu=report, sass=sass).remarks == ("a row was dropped", "cut off")
