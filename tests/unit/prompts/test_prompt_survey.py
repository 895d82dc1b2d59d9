"""What prompts say of a problem in numbers, of the deadlines and of what is installed."""

from __future__ import annotations

import dataclasses

from kopt.ports import Deadlines, Survey, Target, Terms
from kopt.prompts import build
from kopt.prompts.hardware_text import device_text
from kopt.prompts.policy_text import limits_text
from kopt.prompts.survey_text import survey_text
from kopt.survey import SizedTensor
from kopt.testing.small_fleet import small_request


def sized(name: str, *shape: int, dtype: str = "float32") -> SizedTensor:
    return SizedTensor(name=name, shape=shape, dtype=dtype)


PRODUCT = Survey(
    inputs=(sized("[0]", 32768, 1024), sized("[1]", 32768, dtype="int64")),
    outputs=(sized("", 32768, 4096),),
    state=(sized("bias", 4096), sized("weight", 4096, 1024)),
    baseline="compile",
    baselines_us=(("compile", 5927.0), ("eager", 8212.0)),
    sol_us=340.0,
)


def test_sizes_and_the_times_to_beat_are_told_in_numbers() -> None:
    # 4096 + 4096 · 1024 elements; the largest first.
    assert survey_text(PRODUCT) == (
        "## In numbers\n\n"
        "- `forward`: float32 [32768, 1024], int64 [32768] to float32 [32768, 4096].\n"
        "- Its state, 4,198,400 elements: `weight` float32 [4096, 1024], `bias` float32 [4096].\n"
        "- A call here, timed apart from any version: eager PyTorch 8212 us, torch.compile 5927 us "
        "(the baseline); speed of light 340 us (inputs and outputs moved once; operations do not "
        "count)."
    )


def test_of_many_tensors_the_largest_are_named_and_the_rest_is_counted() -> None:
    state = tuple(sized(f"layers.{number}.weight", number + 1, 8) for number in range(40))
    text = survey_text(dataclasses.replace(PRODUCT, state=state))
    # 8 · (1 + … + 40) elements.
    assert "Its state, 6,560 elements: `layers.39.weight` float32 [40, 8], " in text
    assert "`layers.37.weight` float32 [38, 8], … 37 more." in text


def test_further_argument_lists_are_counted() -> None:
    text = survey_text(dataclasses.replace(PRODUCT, num_cases=4))
    assert "It has to be right for 3 more argument lists; the first one is timed." in text


def test_a_speed_of_light_that_is_no_aim_is_not_told() -> None:
    assert "speed of light" not in survey_text(dataclasses.replace(PRODUCT, sol_us=140.0))
    assert "speed of light" not in survey_text(dataclasses.replace(PRODUCT, sol_us=None))


def test_the_bandwidth_of_a_cpu_is_told_where_it_was_measured() -> None:
    measured = dataclasses.replace(PRODUCT, bytes_per_s=21.34e9)
    assert survey_text(measured).endswith(
        "\n- Memory and caches move 21.3 GB/s here, reads and writes together, as measured with as "
        "many bytes as a call's inputs and outputs have."
    )
    assert "GB/s" not in survey_text(PRODUCT)
    assert "GB/s" not in survey_text(measured.untimed())


def test_what_the_cores_of_a_cpu_compute_is_told_where_it_was_measured() -> None:
    measured = dataclasses.replace(PRODUCT, flop_per_s=711.4e9)
    said = "\n- A large float32 matrix product reaches 711 GFLOP/s here."
    assert survey_text(measured).endswith(said)
    assert "FLOP" not in survey_text(PRODUCT)
    assert "FLOP" not in survey_text(measured.untimed())


def test_what_was_not_looked_at_is_not_told() -> None:
    assert survey_text(None) == ""
    assert survey_text(Survey()) == ""
    unmeasured = dataclasses.replace(PRODUCT, baseline=None, baselines_us=())
    assert "A call here" not in survey_text(unmeasured)


def test_the_numbers_follow_the_reference_in_every_prompt_of_a_problem() -> None:
    for made in (
        small_request(first=0, wanted=1),
        dataclasses.replace(small_request(first=0, wanted=1), survey=PRODUCT),
    ):
        user = build(made)[1].text
        assert ("## In numbers" in user) == (made.survey is not None)
        assert user.index("## Reference") < user.index("## Task")
    assert user.index("## Reference") < user.index("## In numbers") < user.index("## Task")


def test_deadlines_are_told_in_seconds_where_they_are_known() -> None:
    deadlines = Deadlines(build_s=180.0, load_s=60.0, call_s=2.5)
    assert limits_text(deadlines) == " (build 180 s, construction 60 s, a call 2.5 s)"
    assert limits_text(None) == ""
    told = dataclasses.replace(small_request(first=0, wanted=1), terms=Terms(deadlines=deadlines))
    assert "Every stage has a deadline (build 180 s, " in build(told)[0].text
    assert "Every stage has a deadline, and" in build(small_request(first=0, wanted=1))[0].text


def test_what_is_installed_is_told_of_both_kinds_of_device() -> None:
    versions = (("Python", "3.12.3"), ("torch", "2.11.0 (CUDA 13.0)"))
    for device, arch in (("cpu", "x86_64"), ("cuda", "sm_90")):
        bare = Target(device=device, name="one", arch=arch, languages=("torch",))
        assert "Installed" not in device_text(bare)
        text = device_text(dataclasses.replace(bare, versions=versions))
        assert "Installed are Python 3.12.3, torch 2.11.0 (CUDA 13.0)." in text


def test_what_reading_the_state_takes_is_told_of_a_known_gpu_where_it_is_no_small_part() -> None:
    survey = dataclasses.replace(
        PRODUCT,
        state=(sized("weight", 28672, 8192, dtype="bfloat16"), sized("on", 8, dtype="bool")),
        baselines_us=(("compile", 112.4),),
    )
    # 28672 · 8192 · 2 bytes at 4.8 TB/s.
    text = survey_text(survey, device="NVIDIA H200")
    assert "`on` bool [8]; reading all of it once takes 97.87 us." in text
    assert "; speed of light 340 us, 379.5 us as fast as a copy (inputs" in text  # 4.8 and 4.3 TB/s
    assert "reading" not in survey_text(survey, device="another GPU")
    assert "as fast as a copy" not in survey_text(survey, device="another GPU")
    slow = dataclasses.replace(survey, baselines_us=(("compile", 10_000.0),))
    assert "reading" not in survey_text(slow, device="NVIDIA H200")
    assert "reading" not in survey_text(survey.untimed(), device="NVIDIA H200")
