from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.support.order import dealt


@dataclass(frozen=True)
class Item:
    """A test with some marks."""

    nodeid: str
    marks: tuple[str, ...] = ()
    fixturenames: tuple[str, ...] = ()

    def get_closest_marker(self, name: str) -> str | None:
        """Return the mark of a name."""
        return name if name in self.marks else None


QUICK = tuple(Item(f"quick.py::{number}") for number in range(100))
SLOW = tuple(
    Item(f"slow{module}.py::{number}", ("slow",))
    for module in range(4)
    for number in range(3)
)
BUILT = (Item("deb.py::test", ("slow",), ("packages",)),)
MACHINES = tuple(Item(f"vm.py::{number}", ("vm", "slow")) for number in range(6))
ALL = (*MACHINES, *QUICK[:50], *BUILT, *SLOW, *QUICK[50:])


def order(items: Sequence[Item], processes: int) -> list[Item]:
    """Deal items that are not pytest's."""
    return dealt(items, processes)  # type: ignore[arg-type, return-value]


class TestDealt:
    def test_one_process(self) -> None:
        """One process runs the slow tests, what needs packages, the rest, machines."""
        assert order(ALL, 1) == [*SLOW, *BUILT, *QUICK, *MACHINES]

    @pytest.mark.parametrize("processes", [1, 2, 3, 4, 64])
    def test_nothing_is_lost(self, processes: int) -> None:
        """Every test runs once, however many processes there are."""
        assert sorted(map(str, order(ALL, processes))) == sorted(map(str, ALL))

    def test_each_begins_with_slow_ones(self) -> None:
        """Equal parts of the order begin with whole slow modules, and end in machines."""
        dealt = order(ALL, 2)
        half = len(ALL) // 2
        first, second = dealt[:half], dealt[half:]

        assert first[:6] == [*SLOW[:3], *SLOW[6:9]]
        assert second[:6] == [*SLOW[3:6], *SLOW[9:]]
        assert first[-3:] == [*MACHINES[::2]]
        assert second[-3:] == [*MACHINES[1::2]]

    def test_fewer_tests_than_processes(self) -> None:
        """A test alone is run, whatever it is."""
        assert order(SLOW[:1], 4) == [SLOW[0]]

    def test_no_test(self) -> None:
        """No test is no test."""
        assert order((), 4) == []
