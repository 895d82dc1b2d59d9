"""Languages of others are named like kopt's own: by commands, in schemas, in manifests."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import jsonschema
import pytest

from kopt import foreign_language
from kopt.cli import export
from kopt.cli.arguments import command_parser, parse
from kopt.cli.subject import add_subject, read_subject
from kopt.data.manifest import target_of
from kopt.data.rundir import RunDir
from kopt.data.schemas import load
from kopt.errors import ConfigError
from kopt.evaluation import to_json
from kopt.foreign_language import known_language, take_up
from kopt.testing.fakes import correct, evaluation_of, source_candidate
from kopt.testing.small_fleet import small_problem

MINE = """
from kopt.foreign_language import ForeignLanguage


def mojo():
    return ForeignLanguage(name="mojo", modules=("mojo_kernels",), guide="Write it well.")
"""
PROBLEM = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.rand(4)]
"""
CANDIDATE = "import mojo_kernels\n\n\nclass ModelNew: ...\n"


@pytest.fixture
def mojo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kind of a language of a file, which this process does not know yet."""
    monkeypatch.setattr(foreign_language, "_taken", {})
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "problem.py").write_text(PROBLEM)
    (tmp_path / "candidate.py").write_text(CANDIDATE)
    monkeypatch.chdir(tmp_path)
    return f"{tmp_path}/mine.py:mojo"


def options_of(*words: str) -> Namespace:
    parser = command_parser("eval", description="")
    add_subject(parser)
    options = parse(parser, ["problem.py", "candidate.py", *words])
    assert options is not None
    return options


def test_a_command_takes_a_language_that_its_overrides_name(mojo: str) -> None:
    named = f"evaluate.languages={mojo}"
    subject = read_subject(options_of(named, "--language", "mojo"), verb="eval")
    assert subject.candidate.language == "mojo"
    assert subject.config.evaluate.languages == (mojo,)
    told = read_subject(options_of(named), verb="eval")
    assert told.candidate.language == "mojo", "its source imports what tells it"
    own = read_subject(options_of(named, "--language", "triton"), verb="eval")
    assert own.candidate.language == "triton"


def test_a_language_that_nobody_knows_is_refused_by_name(mojo: str) -> None:
    del mojo
    with pytest.raises(ConfigError, match=r"unknown language 'mojo'; there are: triton, cuda, .*"):
        read_subject(options_of("--language", "mojo"), verb="eval")
    assert known_language("mojo", others=["mojo"]) == "mojo"


def test_an_evaluation_in_a_language_of_others_keeps_the_schema() -> None:
    candidate = source_candidate("mojo")
    evaluation = evaluation_of(correct(2.0), problem=small_problem(), candidate=candidate)
    record = json.loads(json.dumps(to_json(evaluation))) | {"language": "mojo"}
    jsonschema.validate(record, load("eval"))
    with pytest.raises(jsonschema.ValidationError, match="not a language"):
        jsonschema.validate(record | {"language": "not a language"}, load("eval"))


def test_a_manifest_gives_the_languages_that_this_process_knows(mojo: str) -> None:
    device = {"kind": "cpu", "name": "a CPU", "arch": "x86_64", "languages": ["mojo", "torch"]}
    made = target_of({"device": device})
    assert made is not None
    assert made.languages == ("torch",)
    take_up([mojo])
    made = target_of({"device": device})
    assert made is not None
    assert made.languages == ("mojo", "torch")
    assert target_of({}) is None
    assert target_of({"device": {"kind": "cpu"}}) is None


def test_an_export_takes_the_languages_of_its_runs(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    run.path.mkdir()
    run.write_manifest({"device": {"languages": ["mojo", "torch"]}})
    export._check_languages(["mojo", "cuda"], [run])
    with pytest.raises(ConfigError, match="unknown language 'mojoo'"):
        export._check_languages(["mojoo"], [run])
