from __future__ import annotations

import pytest

from fabricmon.kinds import KINDS
from fabricmon.sim.faults import FAULTS, FaultClass
from fabricmon.sim.score_groups import (
    GROUP_OF_CLASS,
    GROUP_OF_KIND,
    GROUPS,
    group_of_class,
    group_of_kind,
)

CLASSES = [row for row in FAULTS if not row.is_negative]


@pytest.mark.parametrize("row", CLASSES, ids=lambda row: str(row.id))
def test_every_class_has_a_group(row: FaultClass) -> None:
    """That of its row; and so has every kind that answers it."""
    assert GROUP_OF_CLASS[row.id] == row.group
    assert GROUP_OF_CLASS[row.id] in GROUPS
    assert all(GROUP_OF_KIND[kind] in GROUPS for kind in row.accept)


def test_every_kind_has_a_group() -> None:
    """Whatever the agent can say goes into a column."""
    assert {kind.slug for kind in KINDS} <= set(GROUP_OF_KIND)


def test_unknown() -> None:
    """What a later version adds is told apart from nothing."""
    assert group_of_class("F99") == group_of_kind("new_kind") == "other"
