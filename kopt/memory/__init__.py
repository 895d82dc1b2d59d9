"""Memory: what a search has learned by now, and what earlier runs have, as plain values.

Pure: folds over what was tried. The driver journals and recalls
(kopt.driver.memories), the words are kopt.prompts' (memory_text, history_text), the file shared by
runs is kopt.data's (strategies).
"""

from kopt.memory.entry import HEADINGS, Heading, MemoryEntry
from kopt.memory.history import History
from kopt.memory.iteration import Iteration
from kopt.memory.recall import Memory
from kopt.memory.rule import MemoryRule
from kopt.memory.tried import Tried

__all__ = [
    "HEADINGS",
    "Heading",
    "History",
    "Iteration",
    "Memory",
    "MemoryEntry",
    "MemoryRule",
    "Tried",
]
