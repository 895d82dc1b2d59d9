"""How to write each language that the target takes: the guides, examples and signatures."""

from __future__ import annotations

from kopt.candidate import Language
from kopt.foreign_language import foreign_language
from kopt.ports import Target
from kopt.prompts.api_text import api_text
from kopt.prompts.excerpts import fenced
from kopt.prompts.hardware_text import compile_flag, own_flag
from kopt.prompts.templates import example, filled


def languages_text(target: Target, *, api_characters: int = 0) -> str:
    """Return the section on the languages that can be built there, in the target's order.

    Args:
        target: that candidates are written for.
        api_characters: at most, of the signatures of all languages together; each has an equal
            share, and what one leaves over goes to those after it.
    """
    left, pages = api_characters, len(target.apis)
    guides = []
    for language in target.languages:
        guide = _guide(language, target)
        api = next((each for each in target.apis if each.language == language), None)
        if api is not None:
            signatures = api_text(api, max_characters=left // pages)
            left, pages = left - len(signatures), pages - 1
            guide = f"{guide}\n\n{signatures}".rstrip()
        guides.append(guide)
    return filled("languages", names=", ".join(target.languages), guides="\n\n".join(guides))


def _guide(language: Language, target: Target) -> str:
    foreign = foreign_language(language)
    if foreign is not None:
        return foreign.guide.strip()
    match language:
        case "triton":
            return filled("triton", example=fenced(example("triton"), info="python"))
        case "cuda":
            code = example("cuda", arch_flag=compile_flag(target))
            return filled("cuda", specific=_specific(target), example=fenced(code, info="python"))
        case "cpp" if target.device == "cpu":
            return filled("cpp", example=fenced(example("cpp"), info="python"))
        case "cpp":
            return filled("cpp_host")
        case "torch" | "helion" | "cute":
            return filled(language)


def _specific(target: Target) -> str:
    flag = own_flag(target)
    if not flag:
        return ""
    return (
        f"\n- Instructions of this architecture alone need `{flag}` in place of "
        f"`{compile_flag(target)}`."
    )
