"""What a planner's queries are answered with: the profile by aspect, the source, the memory.

Everything is computed from the request; nothing is run. An aspect that the profile has no figures
for is not offered: unknown is not zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from kopt.evidence import Evidence, KernelEvidence
from kopt.ports import WriteRequest
from kopt.prompts.agent_plan import Query
from kopt.prompts.evidence_text import (
    counters_text,
    host_code_text,
    kernels_text,
    named,
    roofline_text,
    rules_text,
    sass_text,
    timeline_text,
)
from kopt.prompts.excerpts import middle_out, source_block
from kopt.prompts.finding_text import findings_text
from kopt.prompts.hardware_text import device_text
from kopt.prompts.history_text import outcome_line
from kopt.tools.feedback import Feedback, KernelCounters, feedback
from kopt.tools.techniques import techniques_of

MAX_ANSWER = 6_000
"""Characters of one answer."""
MAX_FOUND = 12
"""Lines of the memory that one query is answered with."""
_WORD = re.compile(r"[a-z0-9_]{3,}")
_CATEGORIES: dict[str, tuple[str, ...]] = {
    "memory_workload": ("memory",),
    "instruction_stats": ("compute",),
    "occupancy": ("occupancy",),
    "scheduler": ("stalls",),
}
"""Aspect to the categories of counters that belong to it."""


def aspects_of(request: WriteRequest) -> tuple[str, ...]:
    """Return the aspects that the profile has figures for; none where no profile may be told."""
    parent = request.parent
    if parent is None or parent.evidence is None or request.telling.feedback == "none":
        return ()
    evidence = parent.evidence
    return tuple(name for name, text_of in _ASPECTS.items() if text_of(request, evidence))


def query_forms(request: WriteRequest) -> str:
    """Return the queries that have an answer, a line each, in the form in which they are asked."""
    lines = []
    if aspects := aspects_of(request):
        names = ", ".join(f'"{each}"' for each in aspects)
        lines.append(f'{{"query": "profile", "aspect": "…"}} where the aspect is one of {names}')
    lines.append('{"query": "source"} for the whole version, where it was cut above')
    lines.append('{"query": "memory", "words": "…"} for what was tried and learned about them')
    return "\n".join(lines)


def answer_to(query: Query, request: WriteRequest) -> str:
    """Return the answer to a query, in words."""
    if query.kind == "source":
        parent = request.parent
        if parent is None:
            return "There is no version yet: the reference is all there is."
        return source_block(parent.candidate.source, max_characters=8 * MAX_ANSWER)
    if query.kind == "memory":
        return _remembered(query.words, request)
    aspects = aspects_of(request)
    if not aspects:
        return "There is no profile of this version."
    evidence = None if request.parent is None else request.parent.evidence
    aspect = next((each for each in aspects if each == query.words.casefold()), None)
    if aspect is None or evidence is None:
        return f"The profile has no such figures; it has: {', '.join(aspects)}."
    return middle_out(_ASPECTS[aspect](request, evidence), max_characters=MAX_ANSWER)


def _remembered(words: str, request: WriteRequest) -> str:
    """The lines of memory and history that share words with a query, the most shared first."""
    wanted = set(_WORD.findall(words.casefold()))
    lines = list(dict.fromkeys(_memory_lines(request)))
    scored = [(len(wanted & set(_WORD.findall(line.casefold()))), line) for line in lines]
    found = [line for score, line in sorted(scored, key=lambda each: -each[0]) if score]
    if not found:
        return f"Nothing about that among the {len(lines)} things that are remembered."
    return "\n".join(f"- {line}" for line in found[:MAX_FOUND])


def _memory_lines(request: WriteRequest) -> Iterator[str]:
    memory, history = request.memory, request.history
    for tried in (*reversed(memory.experience), *history.siblings, *history.lineage):
        seen = f" Seen before it: {tried.signal}." if tried.signal else ""
        yield f"{outcome_line(tried)}.{seen}"
    for entry in reversed(memory.entries):
        yield entry.text
    for record in memory.strategies:
        advice = f", {record.advice}" if record.advice else ""
        yield f"{record.label}: paid in {record.succeeded} of {record.tried} tries{advice}"


def _strategy(request: WriteRequest, evidence: Evidence) -> str:
    """The analyst's classification: the tier of each kernel, and what applies to it."""
    tiers = [
        f"Kernel {named(each.kernel)}: {each.tier}"
        for each in _told(evidence, "rules").rules
        if each.tier
    ]
    first = next((each.tier for each in _told(evidence, "rules").rules if each.tier), None)
    roofline = roofline_text(evidence)
    techniques = [f"- {text}" for text in techniques_of(evidence, tier=first)]
    found: tuple[str, ...] = ()
    if request.telling.feedback == "tools" and request.parent is not None:
        found = (findings_text(request.parent.findings, max_characters=MAX_ANSWER // 2),)
    head = "Techniques that apply:" if techniques else ""
    return "\n".join(filter(None, (*tiers, roofline, *found, head, *techniques)))


def _throughput(request: WriteRequest, evidence: Evidence) -> str:
    lines = []
    for each in _told(evidence, "rules").rules:
        shown = [
            f"{name} {value:.1f} %"
            for name, value in (("compute", each.compute_pct), ("memory", each.memory_pct))
            if value is not None
        ]
        if shown:
            lines.append(f"Kernel {named(each.kernel)}, of peak: {', '.join(shown)}")
    lines.append(roofline_text(evidence))
    return "\n".join(filter(None, lines))


def _launch(request: WriteRequest, evidence: Evidence) -> str:
    lines = [kernels_text(evidence)]
    for kernel in evidence.kernels:
        shown = [
            f"{value} {unit}"
            for value, unit in (
                (kernel.registers, "registers a thread"),
                (kernel.smem_bytes, "bytes of shared memory"),
                (kernel.spill_bytes, "bytes spilled"),
            )
            if value is not None
        ]
        if shown and kernel.owner == "user":
            lines.append(f"- {named(kernel.name)}: {', '.join(shown)}")
    if evidence.timeline is not None:
        lines.append(timeline_text(evidence.timeline))
    return "\n".join(filter(None, lines))


def _instructions(request: WriteRequest, evidence: Evidence) -> str:
    is_gpu = (evidence.arch or "").startswith("sm_")
    code = sass_text(evidence) if is_gpu else host_code_text(evidence)
    return "\n".join(filter(None, (_counters(evidence, "instruction_stats"), code)))


def _by_counters(aspect: str) -> Callable[[WriteRequest, Evidence], str]:
    return lambda request, evidence: _counters(evidence, aspect)


def _counters(evidence: Evidence, aspect: str) -> str:
    wanted = _CATEGORIES[aspect]
    kernels = []
    for each in _told(evidence, "raw").counters:
        rows = tuple(row for row in each.rows if row.category in wanted)
        if rows:
            kernels.append(KernelCounters(kernel=each.kernel, rows=rows))
    return counters_text(kernels)


def _rules(request: WriteRequest, evidence: Evidence) -> str:
    """All of the profiler's own rules with advice, those with the greatest estimate first."""
    told = rules_text(_told(evidence, "rules").rules)
    more = [line for kernel in evidence.kernels for line in _other_rules(kernel)]
    return "\n".join(filter(None, (told, *more)))


def _other_rules(kernel: KernelEvidence) -> Iterator[str]:
    for rule in kernel.rules:
        if rule.kind == "OPT" and rule.speedup_pct is None:
            yield f"- {named(kernel.name)}: {rule.name}: {rule.message}"


def _told(evidence: Evidence, mode: str) -> Feedback:
    return feedback(evidence, mode="rules" if mode == "rules" else "raw")


_ASPECTS: dict[str, Callable[[WriteRequest, Evidence], str]] = {
    "optimization_strategy": _strategy,
    "rules": _rules,
    "throughput": _throughput,
    "occupancy": _by_counters("occupancy"),
    "memory_workload": _by_counters("memory_workload"),
    "scheduler": _by_counters("scheduler"),
    "launch": _launch,
    "instruction_stats": _instructions,
    "gpu_specs": lambda request, evidence: device_text(request.target),
    "multi_kernel_summary": lambda request, evidence: kernels_text(evidence),
}
"""KernelOPT's aspects (App. A.1), by its names."""
