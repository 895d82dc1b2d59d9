"""The GPU that Triton candidates are compiled for, where there may be none."""

from kopt.actors.build.gpu_facts import KNOWN, gpu_in_view, gpu_of_node, named_gpu


def test_the_newest_known_architecture_of_the_list_is_built_for() -> None:
    assert named_gpu("8.0;9.0+PTX") is KNOWN["9.0"]
    assert named_gpu("9.0a 8.0") is KNOWN["9.0"]
    assert named_gpu("8.0 10.0") is KNOWN["10.0"]
    assert named_gpu("7.5") is None
    assert named_gpu("") is None


def test_the_architecture_is_written_as_targets_write_it() -> None:
    assert [facts.arch for facts in KNOWN.values()] == ["sm_80", "sm_90", "sm_100"]


def test_a_block_may_opt_in_to_all_of_the_shared_memory_but_a_kibibyte() -> None:
    # CUDA's programming guide, compute capabilities: 163, 227 and 227 KiB.
    kib = [facts.block_shared_bytes >> 10 for facts in KNOWN.values()]
    assert kib == [163, 227, 227]


def test_without_a_driver_the_variable_decides(monkeypatch) -> None:
    gpu_of_node.cache_clear()
    monkeypatch.setattr("kopt.actors.build.gpu_facts._ASK", "raise SystemExit(1)")
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    assert gpu_of_node() is KNOWN["9.0"]
    assert gpu_in_view() is None  # it builds for one, and has none
    gpu_of_node.cache_clear()


def test_a_gpu_in_view_is_the_first_that_the_variable_leaves(monkeypatch) -> None:
    ask = """
import json, os
fields = "num_sms block_shared_bytes sm_shared_bytes sm_registers sm_threads l2_bytes total_bytes"
seen = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
print(json.dumps({"name": seen, "major": 9, "minor": 0, **dict.fromkeys(fields.split(), 1)}))
"""
    gpu_of_node.cache_clear()
    monkeypatch.setattr("kopt.actors.build.gpu_facts._ASK", ask)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    in_view, of_node = gpu_in_view(), gpu_of_node()
    gpu_of_node.cache_clear()
    assert in_view is not None
    assert of_node is not None
    assert (in_view.name, of_node.name) == ("1", "all")
