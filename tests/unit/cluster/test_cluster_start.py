"""A cluster that does not start is one line with what to do, whatever Ray raises."""

from __future__ import annotations

import pytest

from kopt.actors import cluster
from kopt.actors.config import ClusterConfig
from kopt.errors import KoptError


def test_a_node_that_is_late_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    def late(**_: object) -> None:
        raise Exception("The current node timed out during startup.\nThe GCS is overloaded.")  # noqa: TRY002 - as Ray does

    monkeypatch.setattr(cluster.ray, "init", late)
    with pytest.raises(KoptError) as caught:
        cluster._start_local(ClusterConfig(), "cpu", str(tmp_path))
    text = str(caught.value)
    assert "timed out during startup. The GCS is overloaded." in text
    assert "try again" in text
    assert "\n" not in text
