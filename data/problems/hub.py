"""Data sets of the Hugging Face hub, on this machine: asked for, or from the hub's own cache."""

from __future__ import annotations

import difflib
from pathlib import Path

from kopt.environment import KERNELBENCH_VARIABLE
from kopt.errors import ConfigError

DATASET_ID = "ScalingIntelligence/KernelBench"
FILES = "*.parquet"
CLOSE_MATCHES = 3
INSTEAD = f"or name a git clone: problems.kernelbench.path or {KERNELBENCH_VARIABLE}"


def dataset_snapshot(dataset: str, revision: str, *, fallback: str | None = None) -> Path:
    """Return the folder with a data set's Parquet files at a revision.

    The hub is asked which commit the revision is and gives what is not cached; a cached copy of
    the revision is used where the hub cannot be reached (or HF_HUB_OFFLINE=1 forbids it). The
    folder's name is the commit.

    Args:
        dataset: its id, `owner/name`.
        revision: a branch, tag or commit of it.
        fallback: another, taken where the hub, or without it the cache, has none of that name.

    Raises:
        ConfigError: huggingface_hub is not installed, there is no such data set or revision, or
            the hub cannot be reached and nothing is cached.
    """
    try:
        from huggingface_hub import errors as hub
        from huggingface_hub import snapshot_download
    except ImportError:
        raise ConfigError(
            f"data set {dataset} is read by huggingface_hub, which is not installed; "
            f"pip install 'kopt-search[hub]', {INSTEAD}"
        ) from None
    unreachable = _unreachable()

    def local(name: str, *, cached_only: bool) -> Path:
        return Path(
            snapshot_download(
                dataset,
                repo_type="dataset",
                revision=name,
                allow_patterns=FILES,
                local_files_only=cached_only,
            )
        )

    try:
        return local(revision, cached_only=False)
    except hub.RevisionNotFoundError:
        if fallback is not None:
            return dataset_snapshot(dataset, fallback)
        raise ConfigError(
            f"data set {dataset} has no revision {revision!r}; {_hint(dataset, revision)}"
        ) from None
    except hub.RepositoryNotFoundError as error:
        raise ConfigError(
            f"the hub has no data set {dataset}, or does not show it without a login "
            f"({_first_line(error)}); {INSTEAD}"
        ) from None
    except unreachable as error:
        for name in (revision, fallback):
            if name is not None:
                try:
                    return local(name, cached_only=True)
                except unreachable:
                    continue
        raise ConfigError(
            f"data set {dataset} at {revision}: the hub cannot be reached and no copy is cached "
            f"({_first_line(error)}); go online once, {INSTEAD}"
        ) from None


def _hint(dataset: str, revision: str) -> str:
    """Close matches, or the revisions there are, or where else one may be."""
    from huggingface_hub import HfApi

    try:
        refs = HfApi().list_repo_refs(dataset, repo_type="dataset")
    except _unreachable():
        return f"leave it out for `main`, {INSTEAD}"
    names = [ref.name for ref in [*refs.tags, *refs.branches]]
    close = difflib.get_close_matches(revision, names, n=CLOSE_MATCHES)
    if close:
        return f"did you mean {', '.join(close)}?"
    return f"there are: {', '.join(names)}; {INSTEAD}"


def _unreachable() -> tuple[type[Exception], ...]:
    """What is raised where the hub gives no answer that can be used.

    A broken proxy, say, is an exception of the hub's HTTP client: its base class stands among
    those of HfHubHTTPError, and which client it is differs between versions of huggingface_hub.
    """
    from huggingface_hub.errors import HfHubHTTPError

    clients: tuple[type[Exception], ...] = HfHubHTTPError.__bases__
    return (OSError, ValueError, *clients)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
