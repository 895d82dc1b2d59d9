"""Exports with their real consumers: TRL's trainers take a step on the CPU, a tiny random model.

Marked `train`; needs the extra of that name. Nothing is downloaded: the tokenizer is made here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kopt.data.exports.choice import Choice
from kopt.data.exports.export import export
from kopt.data.rundir import RunDir

REASON = "the extra `train` is not installed"
trl = pytest.importorskip("trl", reason=REASON)  # first: where it is missing, none is loaded
datasets = pytest.importorskip("datasets", reason=REASON)
transformers = pytest.importorskip("transformers", reason=REASON)

pytestmark = [pytest.mark.train, pytest.mark.slow]
Make = Callable[..., RunDir]
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}</s>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """Bytes as tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate([*letters, "</s>", "<pad>"])}
    plain = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, eos_token="</s>", pad_token="<pad>"
    )
    made.chat_template = TEMPLATE
    return made


@pytest.fixture
def model(tokenizer: Any) -> Any:
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return transformers.LlamaForCausalLM(config)


def loaded(run: RunDir, out: Path, kind: Any, table: str) -> Any:
    """The training split of an export, as its reader gives it."""
    export([run], out, format=kind, choice=Choice(), settings={})
    return datasets.load_dataset(str(out), table, cache_dir=str(out / "cache"))["train"]


def settings(out: Path) -> dict[str, Any]:
    return {
        "output_dir": str(out / "trained"),
        "max_steps": 1,
        "per_device_train_batch_size": 2,
        "report_to": [],
        "use_cpu": True,
        "save_strategy": "no",
        "logging_steps": 1,
        "bf16": False,
    }


def test_sft_takes_a_step(make_run: Make, tmp_path: Path, tokenizer: Any, model: Any) -> None:
    data = loaded(make_run(), tmp_path / "out", "sft", "data")
    trainer = trl.SFTTrainer(
        model=model,
        args=trl.SFTConfig(**settings(tmp_path)),
        train_dataset=data,
        processing_class=tokenizer,
    )
    assert trainer.train().training_loss > 0.0


def test_dpo_takes_a_step(make_run: Make, tmp_path: Path, tokenizer: Any, model: Any) -> None:
    data = loaded(make_run(), tmp_path / "out", "dpo", "data")
    trainer = trl.DPOTrainer(
        model=model,
        ref_model=copy.deepcopy(model),
        args=trl.DPOConfig(**settings(tmp_path)),
        train_dataset=data,
        processing_class=tokenizer,
    )
    assert trainer.train().training_loss > 0.0


def test_grpo_takes_a_step(make_run: Make, tmp_path: Path, tokenizer: Any, model: Any) -> None:
    data = loaded(make_run(), tmp_path / "out", "rl", "prompts")
    seen: list[dict[str, Any]] = []

    def rewarded(completions: list[Any], **columns: Any) -> list[float]:
        seen.append(columns)
        return [float(number) for number, _ in enumerate(completions)]

    trainer = trl.GRPOTrainer(
        model=model,
        args=trl.GRPOConfig(**settings(tmp_path), num_generations=2, max_completion_length=8),
        train_dataset=data,
        reward_funcs=[rewarded],
        processing_class=tokenizer,
    )
    trainer.train()
    assert trainer.state.global_step == 1
    assert set(seen[0]["problem"]) <= set(data["problem"])
    assert all(source.startswith("class Model:") for source in seen[0]["problem_source"])
