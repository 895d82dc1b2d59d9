"""Columns of a corpus: a row for each candidate, and for each completion that held none.

Field metadata: `unit` is the column's unit, `json` marks JSON text, `note` says what it is. Texts
are redacted (kopt.data.corpus.redaction). Lineage is by nodes of the search's tree: the row of
node n of the same `run` and `search` is its n-th version.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

SCHEMA_VERSION = 1
"""Of corpus files. A reader refuses a later one, and upgrades an earlier one."""

MESSAGE = pa.struct([pa.field("role", pa.string()), pa.field("content", pa.string())])
"""A message of a conversation, as chat templates take it."""


def _field(
    name: str,
    kind: pa.DataType,
    note: str,
    *,
    null: bool = False,
    unit: str | None = None,
    json: bool = False,
) -> pa.Field[Any]:
    metadata = {"note": note, "unit": unit, "json": "true" if json else None}
    return pa.field(
        name,
        kind,
        nullable=null,
        metadata={key: value for key, value in metadata.items() if value is not None},
    )


TEXT, INT, REAL, TIMES = pa.string(), pa.int64(), pa.float64(), pa.list_(pa.float32())

CORPUS_SCHEMA = pa.schema(
    [
        _field("schema", pa.int32(), "version of these columns"),
        _field("run", TEXT, "name of the run"),
        _field("search", TEXT, "problem/arm/seed, unique in the run"),
        _field("problem", TEXT, "content id of the problem", unit="sha256"),
        _field("problem_name", TEXT, "as users call it"),
        _field("problem_source", TEXT, "reference module; null where the run lost it", null=True),
        _field("problem_dtype", TEXT, "floating tensors are cast to it; null: as made", null=True),
        _field("problem_family", TEXT, "kind of computation; splits go by it; empty: not known"),
        _field("problem_revision", TEXT, "of the problem set; empty: not known"),
        _field("problem_licence", TEXT, "SPDX identifier; empty: not stated"),
        _field("degenerate", pa.bool_(), "whether a speed-up on the problem means little"),
        _field("arm", TEXT, "setting of the search"),
        _field("policy", TEXT, "kind of the search"),
        _field("seed", INT, "of the search"),
        _field("expansion", INT, "ordinal of the expansion in the search"),
        _field("mode", TEXT, "initial, debug or optimize"),
        _field("slot", INT, "of the expansion; null: the completion held no candidate", null=True),
        _field("completion_index", INT, "of the answer; null: not told by a completion", null=True),
        _field("node", INT, "in the tree; null: the tree was not told", null=True),
        _field("parent_node", INT, "in the tree; 0 is the virtual ROOT"),
        _field("depth", INT, "of the node below ROOT, from 1", unit="expansions"),
        _field("lineage", pa.list_(INT), "nodes from ROOT's child to the parent, in order"),
        _field("candidate", TEXT, "content id; null: none", null=True, unit="sha256"),
        _field("parent", TEXT, "candidate it was made from; null: none", null=True, unit="sha256"),
        _field("source", TEXT, "Python module of the candidate; null: none, or lost", null=True),
        _field("language", TEXT, "of its kernels; null: no candidate", null=True),
        _field("strategy", TEXT, "what its author meant to do; null: no candidate", null=True),
        _field(
            "techniques", pa.list_(TEXT), "that the strategy names; null: no candidate", null=True
        ),
        _field("programmer", TEXT, "who wrote it; null: no candidate", null=True),
        _field("messages", pa.list_(MESSAGE), "prompt as sent; null: nobody was asked", null=True),
        _field("completion", TEXT, "the author's own words; null: none", null=True),
        _field("reasoning", TEXT, "served beside the words; null: none, or not kept", null=True),
        _field("finish", TEXT, "why it ended, in the server's word; empty: nobody said"),
        _field("fault", TEXT, "why the completion held no candidate; empty: it held one"),
        _field("tool_calls", TEXT, "name, arguments, result of each", json=True),
        _field("sampling", TEXT, "model, temperature, seed, …; null: none", null=True, json=True),
        _field("prompt_token_ids", pa.list_(pa.int32()), "null: not served or kept", null=True),
        _field("token_ids", pa.list_(pa.int32()), "null: not served or kept", null=True),
        _field("logprobs", pa.list_(pa.float32()), "of token_ids", null=True, unit="nat"),
        _field("verdict", TEXT, "kind of the verdict; null: it was not judged", null=True),
        _field("eval", TEXT, "the evaluation, every check; null: none", null=True, json=True),
        _field("cached", pa.bool_(), "null: not judged; true: judged before, as text", null=True),
        _field("ladder", TEXT, "numeric policy; null: not judged", null=True),
        _field("track", TEXT, "kernels or anything; null: not judged", null=True),
        _field("device", TEXT, "cpu, or the GPU's name; null: not judged", null=True),
        _field("speedup", REAL, "null unless correct", null=True, unit="baseline / candidate"),
        _field("speedup_lo", REAL, "null unless correct", null=True, unit="the same, 95 %"),
        _field("speedup_hi", REAL, "null unless correct", null=True, unit="the same, 95 %"),
        _field("time_us", REAL, "cold median of a call; null unless correct", null=True, unit="us"),
        _field("baseline_us", REAL, "null unless correct", null=True, unit="us"),
        _field("samples_us", TIMES, "behind time_us; null: none kept", null=True, unit="us"),
        _field("baseline_samples_us", TIMES, "beside samples_us, in pairs", null=True, unit="us"),
        _field("sol_share", REAL, "1 is the speed of light; null: not known", null=True, unit="1"),
        _field("reason", TEXT, "the verdict in a line; null: not judged", null=True),
        _field("reward", REAL, "that the tree backed up; null: it was not told", null=True),
        _field("energy_reduction", REAL, "null: not known", null=True, unit="reference / own"),
        _field("evidence_level", TEXT, "ncu, timeline or static; null: not profiled", null=True),
        _field("evidence", TEXT, "what profilers measured; null: none", null=True, json=True),
        _field("findings", TEXT, "what tools concluded; null: none", null=True, json=True),
        _field("analysis", TEXT, "what a model made of it; null: none", null=True, json=True),
        _field("tokens_in", INT, "counted once for each completion", unit="tokens"),
        _field("tokens_out", INT, "counted once for each completion", unit="tokens"),
        _field("cost_usd", REAL, "counted once for each completion", unit="USD"),
        _field("gpu_s", REAL, "of the device, for verdict and profile; 0 if cached", unit="s"),
        _field("answered_ns", INT, "when its author answered; null: unknown", null=True, unit="ns"),
        _field("arch", TEXT, "sm_90, x86_64, …; null: the run does not say", null=True),
        _field("kopt_version", TEXT, "that ran it; null: the run does not say", null=True),
        _field("software", TEXT, "versions; null: the run does not say", null=True, json=True),
        _field("hardware", TEXT, "host and device; null: not said", null=True, json=True),
    ],
    metadata={"kopt.corpus.schema": str(SCHEMA_VERSION)},
)
"""Columns of `data/train-NNNNN.parquet` of a corpus."""
