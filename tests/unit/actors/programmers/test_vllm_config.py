"""What a pool's section takes, and what is looked for before a server is started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from kopt.actors.programmers.vllm.command import server_command
from kopt.actors.programmers.vllm.placing import _check_gpus
from kopt.actors.programmers.vllm.server_environment import server_environment
from kopt.actors.programmers.vllm_ahead import check_model, find_python
from kopt.actors.programmers.vllm_config import PoolConfig, VllmConfig
from kopt.config import load
from kopt.errors import ConfigError
from kopt.testing.fake_vllm import FakeVllm


def fault_of(**programmer: object) -> str:
    with pytest.raises(ConfigError) as caught:
        load({"problem": "a", "programmer": {"kind": "vllm", **programmer}})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_the_pool_sets_itself_cannot_be_set_beside_it() -> None:
    given = {"arguments": ["--port=8000"]}
    assert "--port is set by programmer.vllm.port" in fault_of(vllm=given)
    assert "base_url" in fault_of(base_url="http://localhost:8000/v1")


def test_a_mistyped_key_is_named_by_its_path_once() -> None:
    assert fault_of(vllm={"pyton": "x"}).startswith(
        "conf programmer.vllm.pyton: no such key; did you mean programmer.vllm.python"
    )


def test_a_secret_has_no_place_in_the_configuration() -> None:
    fault = fault_of(vllm={"environment": {"HF_TOKEN": "hf_1234567890"}})
    assert "HF_TOKEN looks like a secret" in fault


def test_gpus_of_the_servers_are_kept_from_candidates() -> None:
    config = VllmConfig(vllm=PoolConfig(replicas=2, tensor_parallel=4))
    assert config.reserved_gpus("cuda") == 8
    assert config.reserved_gpus("cpu") == 0
    on_cpu = VllmConfig(vllm=PoolConfig(replicas=2, device="cpu"))
    assert on_cpu.reserved_gpus("cuda") == 0


def test_gpus_of_one_server_lie_on_one_node() -> None:
    _check_gpus([8, 4], replicas=3, each=4)
    with pytest.raises(ConfigError, match=r"expected 2 place.s. of 8 .* found 1 .*8, 4"):
        _check_gpus([8, 4], replicas=2, each=8)


def test_an_interpreter_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    config = VllmConfig(vllm=PoolConfig(python=str(tmp_path / "python")))
    with pytest.raises(ConfigError, match=r"expected an interpreter, found no program .*vllm_env"):
        find_python(config, os.environ)
    with pytest.raises(ConfigError, match=r"found none, nor KOPT_VLLM_PYTHON"):
        find_python(VllmConfig(), {})


def test_an_interpreter_without_vllm_is_one_line() -> None:
    config = VllmConfig(vllm=PoolConfig(python=sys.executable))
    with pytest.raises(ConfigError, match=r"expected vLLM in the environment .* no package vllm"):
        find_python(config, os.environ)


def test_the_interpreter_of_the_variable_is_taken(tmp_path: Path) -> None:
    fake = FakeVllm(folder=tmp_path).make()
    assert find_python(VllmConfig(), {"KOPT_VLLM_PYTHON": str(fake.python)}) == fake.python


def test_a_model_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"expected a model's folder, found none at"):
        check_model(VllmConfig(model=str(tmp_path / "none")))
    with pytest.raises(ConfigError, match=r"found no config\.json"):
        check_model(VllmConfig(model=str(tmp_path)))
    with pytest.raises(ConfigError, match=r"a pool serves the one model that it names"):
        check_model(VllmConfig())
    check_model(VllmConfig(model="organisation/name"))


def test_a_command_names_the_model_by_its_folder_and_leaves_the_users_words_last(
    tmp_path: Path,
) -> None:
    model = tmp_path / "tiny"
    model.mkdir()
    config = VllmConfig(
        model=str(model),
        vllm=PoolConfig(
            tensor_parallel=2, tool_call_parser="hermes", arguments=("--enforce-eager",)
        ),
    )
    words = server_command(
        config, python=Path("/env/bin/python"), host="10.0.0.1", port=8001, device="cuda"
    )
    assert words[:3] == ["/env/bin/python", "-m", "vllm.entrypoints.openai.api_server"]
    assert words[words.index("--served-model-name") + 1] == "tiny"
    assert words[words.index("--tensor-parallel-size") + 1] == "2"
    assert words[words.index("--tool-call-parser") + 1] == "hermes"
    assert words[-1] == "--enforce-eager"
    assert "--no-enable-chunked-prefill" not in words


def test_on_a_cpu_seeded_prompts_are_read_in_one_step() -> None:
    def words(**config: object) -> list[str]:
        made = VllmConfig(model="o/n", **config)  # type: ignore[arg-type]
        return server_command(made, python=Path("p"), host="h", port=1, device="cpu")

    assert "--no-enable-chunked-prefill" in words()
    assert "--no-enable-chunked-prefill" not in words(seeded=False)
    own = {"arguments": ("--enable-chunked-prefill",)}
    assert "--no-enable-chunked-prefill" not in words(vllm=own)


def test_a_server_sees_its_host_and_nothing_of_ours() -> None:
    environment = server_environment(
        PoolConfig(environment={"VLLM_LOGGING_LEVEL": "DEBUG"}, cpu_kv_cache_gib=2),
        python=Path("/env/bin/python"),
        key="k",
        device="cpu",
        given={
            "PATH": f"{Path(sys.executable).parent}:/usr/bin",
            "HOME": "/home/me",
            "HF_TOKEN": "t",
            "CUDA_VISIBLE_DEVICES": "3",
            "OPENAI_API_KEY": "secret",
            "PYTHONPATH": "/ours",
            "TRITON_CACHE_DIR": "/kernels",
            "RAY_ADDRESS": "x",
        },
    )
    assert environment == {
        "PATH": "/env/bin:/usr/bin",
        "HOME": "/home/me",
        "HF_TOKEN": "t",
        "CUDA_VISIBLE_DEVICES": "3",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_LOGGING_LEVEL": "DEBUG",
        "VLLM_API_KEY": "k",
    }
