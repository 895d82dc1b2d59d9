import pytest

from kopt.search.node import Node, virtual_root


@pytest.fixture
def make_node():
    """Returns a function that makes a node with the given fields under a parent (a new ROOT)."""

    def make(node_id=1, *, parent=None, status="correct", **fields):
        parent = virtual_root() if parent is None else parent
        node = Node(
            node_id=node_id,
            parent=parent,
            candidate=f"c{node_id}",
            mode="initial",
            status=status,
            reward=0.0,
            ordinal=node_id - 1,
            index=0,
            depth=parent.depth + 1,
            **fields,
        )
        parent.children.append(node)
        return node

    return make
