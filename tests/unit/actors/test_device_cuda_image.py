"""What is queued between timed calls of a GPU compiles for it, without one."""

from __future__ import annotations

import pytest
import torch

from kopt.actors.devices import cuda_image
from kopt.actors.devices.cuda_image import ImageAhead, chain_image

KERNELS = (b"digest_words", b"sweep", b"stage", b"put")


@pytest.fixture(autouse=True)
def cuda_13(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that says it was built for the release whose NVRTC is installed for tests."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(cuda_image, "_known", {})


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_the_kernels_compile_for_every_gpu_from_ampere_on(arch) -> None:
    image = chain_image(arch)
    assert image.startswith(b"\x7fELF")
    assert all(name in image for name in KERNELS)


def test_an_image_that_was_made_ahead_is_not_made_again(monkeypatch) -> None:
    ahead = ImageAhead.begin("sm_90")
    ahead.finish()
    monkeypatch.setattr(cuda_image, "_compiled", lambda arch: pytest.fail("made again"))
    assert chain_image("sm_90").startswith(b"\x7fELF")


def test_what_failed_ahead_is_said_by_who_needs_it() -> None:
    ImageAhead.begin("sm_1").finish()
    with pytest.raises(RuntimeError, match="sm_1"):
        chain_image("sm_1")


def test_what_the_compiler_refuses_comes_with_its_words(monkeypatch, tmp_path) -> None:
    source = tmp_path / "chain.cu"
    source.write_text("__global__ void broken() { nothing; }\n")
    monkeypatch.setattr(cuda_image, "SOURCE", source)
    with pytest.raises(RuntimeError, match=r'chain\.cu does not compile for sm_90: .*"nothing"'):
        chain_image("sm_90")


def test_without_the_compiler_it_is_one_clear_line(monkeypatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "99.0")
    with pytest.raises(RuntimeError, match=r"^libnvrtc\.so\.99 is not found"):
        chain_image("sm_90")
