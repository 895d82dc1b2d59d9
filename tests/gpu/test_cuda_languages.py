"""Languages that a GPU takes candidates in: those whose package is installed, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from kopt.actors.apis.installed import with_apis
from kopt.actors.apis.pages import PAGES, installed_version
from kopt.actors.devices.cuda import cuda_target
from kopt.prompts.hardware_text import device_text
from kopt.tools.architectures import ARCHITECTURES

pytestmark = pytest.mark.gpu


def test_a_gpu_takes_the_languages_that_are_installed() -> None:
    offered = cuda_target().languages
    assert offered[:2] == ("triton", "cuda")
    assert offered[-2:] == ("cpp", "torch")
    for language in ("cute", "helion"):
        assert (language in offered) == (installed_version(language) is not None)


def test_the_signatures_of_what_is_offered_can_be_read_here(tmp_path: Path) -> None:
    target = with_apis(cuda_target(), cache_dir=tmp_path, warn=pytest.fail)
    expected = [each for each in target.languages if each in PAGES and installed_version(each)]
    assert [api.language for api in target.apis] == expected
    assert "triton" in expected


def test_the_table_agrees_with_what_the_device_says() -> None:
    torch = pytest.importorskip("torch")
    target, properties = cuda_target(), torch.cuda.get_device_properties(0)
    architecture = ARCHITECTURES.get(target.arch)
    if architecture is None:
        pytest.skip(f"{target.arch} is not in the table")
    assert architecture.smem_kib * 1024 == properties.shared_memory_per_multiprocessor
    assert architecture.block_smem_kib * 1024 == properties.shared_memory_per_block_optin
    assert architecture.registers == properties.regs_per_multiprocessor
    assert architecture.threads == properties.max_threads_per_multi_processor
    assert f"{architecture.block_smem_kib})" in device_text(target)
