"""What is said of torch without importing it is what torch says of itself."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import torch

from kopt.actors import torch_package as torch_package_module
from kopt.actors.torch_package import TorchPackage, torch_package


def test_it_says_what_torch_says_of_itself() -> None:
    assert torch_package() == TorchPackage(
        folder=Path(torch.__file__).parent,
        version=str(torch.__version__),
        git_version=str(torch.version.git_version),
        cuda=torch.version.cuda,
    )


@pytest.mark.parametrize("text", [None, "debug = False\n"])
def test_a_torch_that_says_no_version_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "version.py").write_text(text)
    spec = ModuleSpec("torch", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(torch_package_module, "find_spec", lambda name: spec)
    with pytest.raises(ImportError, match="says no version"):
        torch_package.__wrapped__()


def test_a_build_lane_loads_no_torch_for_a_cpu() -> None:
    code = (
        "import sys, kopt.actors.workshop\n"
        "from kopt.actors.build.compilers import build_key\n"
        "from kopt.actors.torch_package import torch_package\n"
        "build_key('', language='cpp')\n"
        "print(torch_package().cuda is None and 'torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
