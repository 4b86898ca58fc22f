"""The order in which tests run, so that no process is left with a long one at the end.

`--dist worksteal` gives each process an equal run of neighbours, and who is through
takes the last half of what another one still has.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import pytest


def dealt(items: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """Return the tests so that each process begins with its share of the slow ones.

    Those for which packages are built come after the other slow ones, and those that
    ask what happened in a virtual machine come last of all: it takes minutes. Within
    each part the order is kept, and with it the shuffle; a module's slow tests stay
    together, because they share servers.
    """
    machines = [item for item in items if item.get_closest_marker("vm")]
    others = [item for item in items if not item.get_closest_marker("vm")]
    slow = [item for item in others if item.get_closest_marker("slow")]
    quick = [item for item in others if not item.get_closest_marker("slow")]
    modules = [list(tests) for _, tests in groupby(slow, key=_module)]
    modules.sort(key=lambda tests: any(map(_waits, tests)))
    order: list[pytest.Item] = []
    for number in range(processes):
        size = (len(items) - len(order)) // (processes - number)
        share = [test for tests in modules[number::processes] for test in tests]
        last = machines[number::processes]
        between = max(0, size - len(share) - len(last))
        order += [*share, *quick[:between], *last]
        del quick[:between]
    return order + quick


def _module(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _waits(item: pytest.Item) -> bool:
    return "packages" in getattr(item, "fixturenames", ())
