"""What the unit tests share."""

from __future__ import annotations

try:
    from hypothesis import settings
except ImportError:  # a GPU host that has pytest alone
    pass
else:
    settings.register_profile("kopt", deadline=None)  # none of them is about this host's speed
    settings.load_profile("kopt")
