"""Questions to a corpus as SQL views: DuckDB reads its Parquet files where they lie.

`views.sql` lies beside every corpus: `cd CORPUS && duckdb -init views.sql`, then `FROM models;`. A
corpus of many runs is one set of views over all of them. `views_sql` names several corpora at once.

Speed-ups of several ladders, tracks or devices do not compare: every view that counts them has
those columns, or compares within them alone.
"""

from __future__ import annotations

from collections.abc import Sequence

VIEWS_FILE = "views.sql"
OWN_FILES = ("data/*.parquet",)
"""Of a corpus, from its folder."""
VIEWS: dict[str, str] = {
    "tried": "a row for each candidate, and for each completion that held none",
    "steps": "each candidate beside what it was made from, and whether it was faster beyond noise",
    "models": "what each author reached, and what that cost",
    "model_pairs": "author against author, on the problems that both were given",
    "strategies": "how often each technique paid, by family",
    "tools": "how often each tool found something, and how often what came of it was faster",
    "errors": "what went wrong, by verdict and its first words",
    "faults": "completions that held no candidate, by why",
}
"""View to what its rows are."""

_STEPS = """\
CREATE OR REPLACE VIEW steps AS
SELECT
    own.*,
    coalesce(json_extract_string(own.sampling, '$.model'), own.programmer) AS author,
    parent.verdict AS parent_verdict,
    parent.speedup AS parent_speedup,
    parent.findings AS parent_findings,
    own.speedup / coalesce(parent.speedup, 1.0) AS gain,
    coalesce(own.speedup_lo > coalesce(parent.speedup, 1.0), false) AS improved
FROM tried AS own
LEFT JOIN tried AS parent
    ON parent.run = own.run AND parent.search = own.search AND parent.node = own.parent_node
WHERE own.candidate IS NOT NULL AND own.programmer <> 'seed';
"""
_MODELS = """\
CREATE OR REPLACE VIEW models AS
SELECT
    coalesce(json_extract_string(sampling, '$.model'), programmer) AS author,
    ladder, track, device,
    count(DISTINCT problem) AS problems,
    count(*) AS candidates,
    avg((verdict = 'correct')::INT) AS correct_share,
    avg((verdict = 'cheated')::INT) AS cheated_share,
    median(speedup) AS median_speedup,
    max(speedup) AS best_speedup,
    sum(tokens_out)::BIGINT AS tokens_out,
    sum(cost_usd) AS cost_usd,
    sum(gpu_s) AS gpu_s
FROM tried
WHERE verdict IS NOT NULL AND programmer <> 'seed'
GROUP BY ALL
ORDER BY candidates DESC, author;
"""
_PAIRS = """\
CREATE OR REPLACE VIEW model_pairs AS
WITH best AS (
    SELECT
        author, problem, ladder, track, device,
        coalesce(max(speedup), 0.0) AS speedup,
        arg_max(speedup_lo, speedup) AS lo,
        arg_max(speedup_hi, speedup) AS hi
    FROM steps
    WHERE verdict IS NOT NULL
    GROUP BY ALL
)
SELECT
    one.author AS author, other.author AS other,
    ladder, track, device,
    count(*) AS problems,
    count(*) FILTER (one.speedup > 0 AND (other.speedup = 0 OR one.lo > other.hi)) AS wins,
    count(*) FILTER (other.speedup > 0 AND (one.speedup = 0 OR other.lo > one.hi)) AS losses,
    exp(avg(ln(one.speedup / other.speedup)) FILTER (one.speedup > 0 AND other.speedup > 0))
        AS geomean_ratio
FROM best AS one
JOIN best AS other USING (problem, ladder, track, device)
WHERE one.author <> other.author
GROUP BY ALL
ORDER BY author, other;
"""
_STRATEGIES = """\
CREATE OR REPLACE VIEW strategies AS
WITH each AS (
    SELECT unnest(techniques) AS technique, problem_family, language, verdict, gain, improved
    FROM steps
    WHERE verdict IS NOT NULL
)
SELECT
    technique, problem_family, language,
    count(*) AS tried,
    count(*) FILTER (verdict = 'correct') AS correct,
    count(*) FILTER (improved) AS improved,
    avg(improved::INT) AS success_rate,
    exp(avg(ln(gain)) FILTER (gain > 0)) AS geomean_gain
FROM each
GROUP BY ALL
ORDER BY tried DESC, technique, problem_family;
"""
_TOOLS = """\
CREATE OR REPLACE VIEW tools AS
WITH profiled AS (
    SELECT run, search, node, problem_family, device,
        list_distinct(json_extract_string(findings, '$.findings[*].tool')) AS fired
    FROM tried
    WHERE findings IS NOT NULL AND node IS NOT NULL
),
found AS (SELECT *, unnest(fired) AS tool FROM profiled),
counts AS (SELECT problem_family, device, count(*) AS profiled FROM profiled GROUP BY ALL),
after AS (
    SELECT run, search, parent_node, count(*) AS children, count(*) FILTER (improved) AS improved
    FROM steps
    WHERE verdict IS NOT NULL
    GROUP BY ALL
)
SELECT
    found.tool, problem_family, device,
    any_value(counts.profiled) AS profiled,
    count(*) AS fired,
    count(*) / any_value(counts.profiled) AS hit_rate,
    coalesce(sum(after.children), 0)::BIGINT AS children,
    coalesce(sum(after.improved), 0)::BIGINT AS improved
FROM found
JOIN counts USING (problem_family, device)
LEFT JOIN after
    ON after.run = found.run AND after.search = found.search AND after.parent_node = found.node
GROUP BY ALL
ORDER BY fired DESC, tool, problem_family;
"""
_ERRORS = """\
CREATE OR REPLACE VIEW errors AS
SELECT
    verdict,
    split_part(split_part(reason, ': ', 1), '#', 1) AS what,
    language,
    coalesce(json_extract_string(sampling, '$.model'), programmer) AS author,
    count(*) AS times,
    any_value(reason) AS example
FROM tried
WHERE verdict <> 'correct'
GROUP BY ALL
ORDER BY times DESC, verdict, what;
"""
_FAULTS = """\
CREATE OR REPLACE VIEW faults AS
SELECT
    fault, finish,
    json_extract_string(sampling, '$.model') AS author,
    count(*) AS times
FROM tried
WHERE candidate IS NULL
GROUP BY ALL
ORDER BY times DESC, fault;
"""


def views_sql(files: Sequence[str] = OWN_FILES) -> str:
    """Return the statements that make VIEWS.

    Args:
        files: names or patterns of corpora's Parquet files; by default a corpus's own, from its
            folder. Columns that a file of an earlier kopt lacks are null.
    """
    named = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    tried = (
        "CREATE OR REPLACE VIEW tried AS\n"
        f"SELECT * FROM read_parquet([{named}], union_by_name = true);\n"
    )
    told = "".join(f"-- {name}: {what}\n" for name, what in VIEWS.items())
    return "\n".join((told, tried, _STEPS, _MODELS, _PAIRS, _STRATEGIES, _TOOLS, _ERRORS, _FAULTS))
