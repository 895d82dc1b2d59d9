"""Write the golden files of tests/golden/ anew; the diff is reviewed, and explained where it lands.

    python scripts/regen_golden.py [trees] [config] [prompts] [findings]

Without arguments, all of them. `--check` writes nothing and exits 1 if any would change.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

from kopt.testing.golden_trees import golden_trees

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden"
USAGE_EXIT = 2


def tree_files() -> dict[Path, str]:
    """Return the text of each golden tree, by its file."""
    return {
        GOLDEN / "trees" / f"{name}.json": json.dumps(tree, indent=1) + "\n"
        for name, tree in golden_trees().items()
    }


def config_files() -> dict[Path, str]:
    """Return the text of the composed default configuration, by its file."""
    composed_default = runpy.run_path(str(GOLDEN / "regen_config.py"))["composed_default"]
    return {GOLDEN / "config.yaml": composed_default()}


def prompt_files() -> dict[Path, str]:
    """Return the text of each golden prompt, by its file."""
    folder = GOLDEN / "prompts"
    golden_prompts = runpy.run_path(str(folder / "regen_prompts.py"))["golden_prompts"]
    return {folder / f"{name}.md": text for name, text in golden_prompts().items()}


def findings_files() -> dict[Path, str]:
    """Return the text of each evidence and what the tools say of it, by its file."""
    folder = GOLDEN / "findings"
    golden_findings = runpy.run_path(str(folder / "regen_findings.py"))["golden_findings"]
    return {folder / name: text for name, text in golden_findings().items()}


GROUPS: dict[str, Callable[[], dict[Path, str]]] = {
    "trees": tree_files,
    "config": config_files,
    "prompts": prompt_files,
    "findings": findings_files,
}
"""Name of a group to a function that gives the text of each of its files."""


def main(arguments: list[str]) -> int:
    """Write the groups that are named, and return the exit code."""
    is_check = "--check" in arguments
    names = [argument for argument in arguments if argument != "--check"] or list(GROUPS)
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        print(f"unknown group {unknown[0]!r}; there are: {', '.join(GROUPS)}", file=sys.stderr)
        return USAGE_EXIT
    changed = []
    for name in names:
        for path, text in GROUPS[name]().items():
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                changed.append(path)
                if not is_check:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
    for path in changed:
        print(f"{'differs' if is_check else 'wrote'} {path.relative_to(GOLDEN)}")
    return 1 if is_check and changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
