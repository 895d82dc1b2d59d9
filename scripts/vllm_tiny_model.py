"""Make a language model of half a megabyte with random weights, to try serving; no download.

A byte-level BPE is trained on kopt's own sources, a chat template written for it, and a Qwen2 of
two layers saved beside it. What it says is noise: what is tried with it is all that is around a
model.
Runs in the environment of scripts/vllm_env.sh (it needs torch and transformers). Seconds.

Usage: FOLDER/bin/python scripts/vllm_tiny_model.py OUT [width=64] [vocabulary=2048] [context=4096]
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

PAD, BEGIN, END = "<|pad|>", "<|begin|>", "<|end|>"
CHAT_TEMPLATE = """\
{%- if tools %}<|begin|>tools
{{ tools | tojson }}<|end|>
{% endif %}
{%- for message in messages %}<|begin|>{{ message.role }}
{{ message.content or "" }}
{%- for call in message.tool_calls or [] %}
<tool_call>{{ call.function | tojson }}</tool_call>
{%- endfor %}<|end|>
{% endfor %}
{%- if add_generation_prompt %}<|begin|>assistant
{% endif %}"""
HEAD_WIDTH = 32
DEFAULTS = {"width": 64, "vocabulary": 2048, "context": 4096}


def make_tokenizer(vocabulary: int) -> PreTrainedTokenizerFast:
    """Return a tokenizer trained on the sources of this checkout."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, BEGIN, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    root = Path(__file__).resolve().parent.parent
    sources = sorted(str(path) for path in (root / "actors").rglob("*.py"))
    tokenizer.train(sources, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=PAD)
    fast.chat_template = CHAT_TEMPLATE
    return fast


def make_model(vocabulary: int, *, width: int, context: int) -> Qwen2ForCausalLM:
    """Return a model whose weights are drawn; always the same ones."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=2,
        num_attention_heads=width // HEAD_WIDTH,
        num_key_value_heads=max(1, width // HEAD_WIDTH // 2),
        max_position_embeddings=context,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=2,
    )
    return Qwen2ForCausalLM(config).to(torch.bfloat16)


def main(words: list[str]) -> None:
    """Make the folder."""
    if not words or "=" in words[0]:
        sys.exit("expected the folder to make, such as /tmp/tiny_model")
    out = Path(words[0])
    options = DEFAULTS | {
        key: int(value) for key, _, value in (w.partition("=") for w in words[1:])
    }
    tokenizer = make_tokenizer(options["vocabulary"])
    tokenizer.save_pretrained(out)
    model = make_model(len(tokenizer), width=options["width"], context=options["context"])
    model.save_pretrained(out)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{out}: {parameters:,} parameters, {len(tokenizer):,} tokens in the vocabulary")


if __name__ == "__main__":
    main(sys.argv[1:])
