"""What the unit tests share."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("kopt", deadline=None)  # none of them is about this host's speed
settings.load_profile("kopt")
