"""The speed of light of a problem, by hand."""

from __future__ import annotations

import pytest

from kopt.actors.supervisor.light import moved_bytes
from kopt.speed_of_light import Light, Memory, Moved, gpu_bytes_per_s, speed_of_light

MIB = 1 << 20


def test_every_byte_that_matters_moves_once_at_the_memorys_rate() -> None:
    moved = Moved(sure_bytes=2_000, input_bytes=3_000, output_bytes=1_000)
    light = speed_of_light(moved, Memory(bytes_per_s=1e9, most_bytes_per_s=2e9))
    assert light.sol_us == pytest.approx(4.0)
    # Half of what is surely read and the output, at 2.2 GB/s.
    assert light.floor_us == pytest.approx(2_000 / 2.2e9 * 1e6)


def test_where_it_is_not_known_what_is_read_no_speed_of_light_is_said() -> None:
    moved = Moved(sure_bytes=2_000, input_bytes=None, output_bytes=1_000)
    light = speed_of_light(moved, Memory(bytes_per_s=1e9, most_bytes_per_s=2e9))
    assert light.sol_us is None
    assert light.floor_us == pytest.approx(2_000 / 2.2e9 * 1e6)


def test_inputs_count_by_how_much_of_them_is_read() -> None:
    sizes = [100, 20, 3]
    assert moved_bytes(sizes, shares=["surely", "likely", "partly"], output_bytes=7) == Moved(
        sure_bytes=100, input_bytes=120, output_bytes=7
    )
    assert moved_bytes(sizes, shares=["surely", "unknown", "partly"], output_bytes=7) == Moved(
        sure_bytes=100, input_bytes=None, output_bytes=7
    )


def test_what_fits_into_the_last_cache_need_not_have_left_it() -> None:
    memory = Memory(bytes_per_s=4.8e12, most_bytes_per_s=4.8e12, cache_bytes=60 * MIB)
    small = speed_of_light(Moved(sure_bytes=0, input_bytes=0, output_bytes=60 * MIB), memory)
    assert small.floor_us == 0.0
    assert small.sol_us == pytest.approx(13.1, rel=0.01)
    large = speed_of_light(Moved(sure_bytes=0, input_bytes=0, output_bytes=160 * MIB), memory)
    assert large.floor_us == pytest.approx(100 * MIB / 5.28e12 * 1e6)


def test_nothing_is_said_of_a_device_that_is_not_known() -> None:
    assert speed_of_light(Moved(sure_bytes=1, input_bytes=1, output_bytes=1), None) == Light()
    assert gpu_bytes_per_s("a card of tomorrow") is None


@pytest.mark.parametrize(
    ("name", "tb_per_s"),
    [
        ("NVIDIA H200", 4.8),
        ("NVIDIA GH200 480GB", 4.9),
        ("NVIDIA H100 80GB HBM3", 3.35),
        ("NVIDIA H100 PCIe", 2.04),
        ("NVIDIA A100-SXM4-40GB", 1.555),
        ("NVIDIA A100-SXM4-80GB", 2.039),
        ("NVIDIA H20", 4.0),
        ("NVIDIA B200", 8.0),
        ("NVIDIA L40S", 0.864),
        ("NVIDIA L4", 0.3),
        ("Tesla T4", 0.32),
    ],
)
def test_a_gpu_is_known_by_its_name(name, tb_per_s) -> None:
    assert gpu_bytes_per_s(name) == pytest.approx(tb_per_s * 1e12)
