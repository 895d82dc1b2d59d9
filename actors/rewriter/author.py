"""The rewriter as an author: a request in, candidates out."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from kopt.actors.rewriter.graph import NotRewritable
from kopt.actors.rewriter.plan import Fold
from kopt.actors.rewriter.reference import ModuleMode
from kopt.actors.rewriter.study import DeviceKind, Study
from kopt.actors.rewriter.verbatim import verbatim_candidates
from kopt.actors.rewriter.write import Written
from kopt.candidate import Candidate
from kopt.ports import Answer, WriteRequest

CACHED_PROBLEMS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unseen:
    """A problem whose graph cannot be seen, or not be written down."""

    reason: str
    candidates: tuple[Written, ...]


class RewriterAuthor:
    """Writes candidates by rules and generated kernels. Deterministic; holds only a cache."""

    name = "rewriter"

    def __init__(self, *, fold: Fold = "call") -> None:
        """Begin with nothing read.

        Args:
            fold: when weights are folded (`programmer.fold`).
        """
        self._fold: Fold = fold
        self._studied: OrderedDict[tuple[str, str, str], Study | _Unseen] = OrderedDict()

    def write(self, request: WriteRequest, mode: ModuleMode) -> Answer:
        """Write the slots of an expansion.

        Args:
            request: what to write from.
            mode: how modules run (`evaluate.module_mode`).

        Returns:
            Candidates in the order of their slots; exhausted where the node has no more, with
            the reason as a note where the problem cannot be rewritten at all.

        Raises:
            ProblemError: the problem's source does not import, or breaks the contract.
        """
        study = self._study(request, mode)
        expansion = request.expansion
        last = expansion.first_child + expansion.num_candidates
        if isinstance(study, _Unseen):
            # Only the root has candidates: there is nothing to vary about them.
            known = study.candidates if request.parent is None else ()
            return Answer(
                candidates=tuple(
                    self._candidate(w, request) for w in known[expansion.first_child : last]
                ),
                exhausted=len(known) <= last,
                note=f"not rewritable: {study.reason}",
            )
        parent = None if request.parent is None else request.parent.candidate.source
        tools = () if request.parent is None else [f.tool for f in request.parent.findings]
        found = study.candidates(
            parent, mode=expansion.mode, limit=last + 1, findings=tuple(dict.fromkeys(tools))
        )
        made = tuple(self._candidate(w, request) for w in found[expansion.first_child : last])
        return Answer(
            candidates=made,
            exhausted=len(found) <= last,
            note="" if len(made) == expansion.num_candidates else "no more variants of this node",
        )

    def _study(self, request: WriteRequest, mode: ModuleMode) -> Study | _Unseen:
        device: DeviceKind = "cuda" if request.target.device == "cuda" else "cpu"
        key = (request.problem.problem_id, mode, device)
        if key in self._studied:
            self._studied.move_to_end(key)
            return self._studied[key]
        study: Study | _Unseen
        try:
            study = Study(
                request.problem,
                mode=mode,
                device=device,
                languages=request.target.languages,
                fold=self._fold,
            )
        except NotRewritable as error:
            ways = verbatim_candidates(request.problem, mode=mode) if device == "cuda" else []
            study = _Unseen(reason=error.reason, candidates=tuple(ways))
        self._studied[key] = study
        while len(self._studied) > CACHED_PROBLEMS:
            self._studied.popitem(last=False)
        return study

    def _candidate(self, written: Written, request: WriteRequest) -> Candidate:
        parent = request.parent
        return Candidate(
            source=written.source,
            language=written.language,
            parent=None if parent is None else parent.candidate.candidate_id,
            strategy=written.strategy,
            programmer=self.name,
        )
