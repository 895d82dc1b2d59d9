"""Progressive widening: when a node may get another child.

Source: KernelPro §3.3.2, after Auger et al. 2013. A node of N visits may have at most
C_pw * N^alpha children; C_pw is 2 for ROOT and failed nodes (a repair needs one specific fix), 3
for correct ones (their optimisations are many). Pending slots count as children and as visits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kopt.search.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Widening:
    """The constants of the gate."""

    c_pw_failed: float
    """C_pw of ROOT and of failed nodes, > 0."""
    c_pw_successful: float
    """C_pw of correct nodes, > 0."""
    alpha: float
    """Exponent, 0 to 1."""

    def is_open(self, node: Node) -> bool:
        """Return whether the node has fewer than C_pw * N'^alpha children."""
        c_pw = self.c_pw_successful if node.status == "correct" else self.c_pw_failed
        return node.children_expected < c_pw * math.pow(node.visits_expected, self.alpha)
