"""Columns of the Parquet files of a run: journal parts and results. The schema is the contract.

A journal part has a column for each key of the JSON lines: the envelope, then the events' own
fields, null for events of other kinds. Free-form values (`eval`, `policy_config`, `sampling`,
`tool_calls`) are JSON text: such a column gives back exactly what was appended, also where a later
kopt adds a field, and sealing cannot fail on a shape. DuckDB reads it as `eval->>'$.speedup'`,
Polars by `str.json_path_match` or `str.json_decode`.

Field metadata: `kinds` are the events that have the column, `unit` its unit, `json` marks JSON.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kopt.data.record import SCHEMA_VERSION

RESULTS_SCHEMA_VERSION = 1


def _field(
    name: str,
    kind: pa.DataType,
    *,
    null: bool = False,
    unit: str | None = None,
    kinds: str | None = None,
    json: bool = False,
) -> pa.Field[Any]:
    metadata = {"unit": unit, "kinds": kinds, "json": "true" if json else None}
    return pa.field(
        name,
        kind,
        nullable=null or kinds is not None,
        metadata={key: value for key, value in metadata.items() if value is not None} or None,
    )


JOURNAL_SCHEMA = pa.schema(
    [
        _field("schema", pa.int32()),
        _field("seq", pa.int64(), unit="events since the run began"),
        _field("time_ns", pa.int64(), unit="ns since the epoch"),
        _field("run", pa.string()),
        _field("search", pa.string()),
        _field("kind", pa.string()),
        _field("problem", pa.string(), kinds="search_started agent_call"),
        _field("problem_name", pa.string(), kinds="search_started"),
        _field("arm", pa.string(), kinds="search_started"),
        _field("seed", pa.int64(), kinds="search_started expansion_asked"),
        _field("policy", pa.string(), kinds="search_started"),
        _field("policy_config", pa.string(), kinds="search_started search_extended", json=True),
        _field(
            "expansion",
            pa.int64(),
            kinds="expansion_asked prompt_sent answer_received agent_call candidate_made verdict "
            "evidence findings profile_analysis memory_updated told expansion_cancelled",
        ),
        _field(
            "index",
            pa.int64(),
            kinds="answer_received candidate_made verdict evidence findings profile_analysis told",
        ),
        _field("agent", pa.string(), kinds="agent_call"),
        _field("slot", pa.int64(), kinds="agent_call"),
        _field("turn", pa.int64(), kinds="agent_call"),
        _field("parent_node", pa.int64(), kinds="expansion_asked"),
        _field("parent", pa.string(), kinds="expansion_asked candidate_made"),
        _field("mode", pa.string(), kinds="expansion_asked"),
        _field("n", pa.int64(), unit="candidates", kinds="expansion_asked"),
        _field("first_child", pa.int64(), kinds="expansion_asked"),
        _field(
            "messages",
            pa.string(),
            unit="sha256 of an artefact",
            kinds="prompt_sent agent_call profile_analysis memory_updated",
        ),
        _field(
            "sampling",
            pa.string(),
            kinds="prompt_sent agent_call profile_analysis memory_updated",
            json=True,
        ),
        _field("tokens", pa.int64(), unit="tokens", kinds="prompt_sent"),
        _field("candidates", pa.int64(), unit="candidates", kinds="answer_received"),
        _field("answer", pa.string(), unit="sha256 of an artefact", kinds="answer_received"),
        _field(
            "text",
            pa.string(),
            unit="sha256 of an artefact",
            kinds="answer_received agent_call profile_analysis memory_updated",
        ),
        _field("finish", pa.string(), kinds="answer_received agent_call"),
        _field(
            "fault",
            pa.string(),
            kinds="answer_received agent_call profile_analysis memory_updated",
        ),
        _field("tool_calls", pa.string(), kinds="answer_received", json=True),
        _field(
            "tokens_in",
            pa.int64(),
            unit="tokens",
            kinds="answer_received agent_call profile_analysis memory_updated",
        ),
        _field(
            "tokens_out",
            pa.int64(),
            unit="tokens",
            kinds="answer_received agent_call profile_analysis memory_updated",
        ),
        _field(
            "cost_usd",
            pa.float64(),
            unit="USD",
            kinds="answer_received agent_call profile_analysis memory_updated",
        ),
        _field("exhausted", pa.bool_(), kinds="answer_received expansion_cancelled"),
        _field("note", pa.string(), kinds="answer_received"),
        _field("trace", pa.string(), unit="sha256 of an artefact", kinds="answer_received"),
        _field(
            "reasoning",
            pa.string(),
            unit="sha256 of an artefact",
            kinds="answer_received agent_call",
        ),
        _field(
            "candidate",
            pa.string(),
            kinds="candidate_made verdict evidence findings profile_analysis",
        ),
        _field("source", pa.string(), unit="sha256 of an artefact", kinds="candidate_made"),
        _field("language", pa.string(), kinds="candidate_made"),
        _field("strategy", pa.string(), kinds="candidate_made"),
        _field("programmer", pa.string(), kinds="candidate_made"),
        _field("cached", pa.bool_(), kinds="verdict evidence"),
        _field("eval", pa.string(), kinds="verdict", json=True),
        _field("ref", pa.string(), unit="sha256 of an artefact", kinds="evidence"),
        _field("level", pa.string(), kinds="evidence"),
        _field("is_reference", pa.bool_(), kinds="evidence"),
        _field("profiled_s", pa.float64(), unit="s", kinds="evidence"),
        _field("findings", pa.string(), kinds="findings", json=True),
        _field("left_out", pa.int64(), unit="findings", kinds="findings"),
        _field("remarks", pa.string(), kinds="findings", json=True),
        _field("energy_notes", pa.string(), kinds="findings", json=True),
        _field("silent", pa.string(), kinds="findings", json=True),
        _field("analysis", pa.string(), kinds="profile_analysis", json=True),
        _field("origin", pa.string(), kinds="memory_updated"),
        _field("entries", pa.string(), kinds="memory_updated", json=True),
        _field("node", pa.int64(), kinds="told"),
        _field("reward", pa.float64(), kinds="told"),
        _field("energy_reduction", pa.float64(), unit="reference / candidate", kinds="told"),
        _field("device", pa.string(), kinds="device_quarantined"),
        _field("device_name", pa.string(), kinds="device_quarantined"),
        _field("host", pa.string(), kinds="device_quarantined"),
        _field(
            "reason",
            pa.string(),
            kinds="evidence expansion_cancelled search_ended device_quarantined",
        ),
        # A search's is 0 or 1; a run's counts its failed searches.
        _field("failed", pa.int64(), unit="searches", kinds="search_ended run_ended"),
    ],
    metadata={"kopt.journal.schema": str(SCHEMA_VERSION)},
)
"""Columns of `journal/part-NNNNNN.parquet`."""

RESULTS_SCHEMA = pa.schema(
    [
        _field("problem", pa.string()),
        _field("problem_name", pa.string()),
        _field("arm", pa.string()),
        _field("seed", pa.int64()),
        _field("policy", pa.string()),
        _field("programmer", pa.string(), null=True),
        _field("ladder", pa.string(), null=True),
        _field("device", pa.string(), null=True),
        _field("outcome", pa.string()),
        _field("root_cause", pa.string(), null=True),
        _field("speedup", pa.float64(), null=True, unit="baseline / candidate"),
        _field("speedup_lo", pa.float64(), null=True, unit="baseline / candidate, 95 %"),
        _field("speedup_hi", pa.float64(), null=True, unit="baseline / candidate, 95 %"),
        _field("speedup_eager", pa.float64(), null=True, unit="eager / candidate"),
        _field("speedup_compile", pa.float64(), null=True, unit="torch.compile / candidate"),
        _field("speedup_given", pa.float64(), null=True, unit="given kernel / candidate"),
        _field("best_candidate", pa.string(), null=True),
        _field("baseline_us", pa.float64(), null=True, unit="us"),
        _field("time_us", pa.float64(), null=True, unit="us"),
        _field("sol_share", pa.float64(), null=True, unit="1 is the speed of light"),
        _field("degenerate", pa.bool_()),
        _field("candidates", pa.int64(), unit="verdicts"),
        _field("correct", pa.int64(), unit="verdicts"),
        _field("cheated", pa.int64(), unit="verdicts"),
        _field("cached", pa.int64(), null=True, unit="verdicts"),
        _field("iterations", pa.int64(), unit="expansions told of"),
        _field("wall_s", pa.float64(), unit="s"),
        _field("gpu_s", pa.float64(), unit="s of the device"),
        _field("candidates_per_gpu_hour", pa.float64(), null=True, unit="candidates"),
        _field("tokens_in", pa.int64(), unit="tokens"),
        _field("tokens_out", pa.int64(), unit="tokens"),
        _field("cost_usd", pa.float64(), unit="USD"),
        _field("answers", pa.int64(), unit="completions"),
        _field("answers_faulty", pa.int64(), unit="completions"),
    ],
    metadata={"kopt.results.schema": str(RESULTS_SCHEMA_VERSION)},
)
"""Columns of `results.parquet`, a row per search."""
