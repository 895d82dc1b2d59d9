"""The exit codes of every command (DESIGN §10)."""

DONE = 0
FAILED = 1
"""A search failed, a replay differs, a listed file is broken, or the machinery broke."""
BAD_CONFIG = 2
"""Bad configuration or usage, or a disk that cannot be used; one line for each fault."""
NOT_CORRECT = 3
"""`eval`: any verdict but correct."""
SUSPENDED = 75
"""All that is left of a run waits for answers (sysexits' EX_TEMPFAIL): `kopt resume` goes on."""
INTERRUPTED = 130
