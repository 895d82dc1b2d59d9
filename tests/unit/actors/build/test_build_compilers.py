"""What a build depends on is in its key; without compilers torch's own way is left."""

from kopt.actors.build import compilers as compilers_module
from kopt.actors.build.compilers import Compilers, build_key, find_compilers, processor
from kopt.actors.build.toolchain import compiler_environment, provide_toolchain

SOURCE = "module = load_inline('x', 'int f();')"


def test_the_key_of_a_build_changes_with_all_that_it_depends_on(monkeypatch) -> None:
    keys = {
        build_key(SOURCE, language="cpp"),
        build_key(SOURCE + "\n", language="cpp"),
        build_key(SOURCE, language="cuda"),
    }
    monkeypatch.setattr(compilers_module, "processor", lambda: "another")
    keys.add(build_key(SOURCE, language="cpp"))
    found = find_compilers()
    other = Compilers(cxx=found.cxx, nvcc=None, archs="", fingerprint="another")
    monkeypatch.setattr(compilers_module, "find_compilers", lambda: other)
    keys.add(build_key(SOURCE, language="cpp"))
    assert len(keys) == 5


def test_a_source_that_is_no_text_has_a_key(monkeypatch) -> None:
    assert len(build_key("\udc80", language="cpp")) == 64


def test_the_processor_is_known_for_march_native() -> None:
    assert processor() == processor() != ""


def test_a_toolchain_that_cannot_be_set_up_leaves_torchs_way(tmp_path, monkeypatch, caplog) -> None:
    lame = Compilers(cxx="/bin/false", nvcc=None, archs="", fingerprint="lame")
    monkeypatch.setattr("kopt.actors.build.toolchain.find_compilers", lambda: lame)
    assert "false" in provide_toolchain(tmp_path)
    assert compiler_environment(tmp_path) == {}
    (record,) = caplog.records
    assert record.getMessage().startswith("extensions are built as torch builds them: ")
    assert provide_toolchain(tmp_path) is not None  # known by now: nothing is tried again
    assert len(caplog.records) == 1
