"""How often Python looks for garbage."""

import gc
from collections.abc import Iterator

import pytest

from fabricmon.runtime import memory


class Ring:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self
        self.load = bytearray(1)


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """Leave Python as it was."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


class TestSettle:
    def test_what_is_there_is_left_out(self) -> None:
        """And new objects are looked through less often."""
        memory.settle()
        assert gc.get_freeze_count() > 1000
        assert gc.get_threshold() == (20_000, 20, 50)

    def test_what_was_left_out_is_freed_once_it_is_garbage(self) -> None:
        """A configuration that was replaced does not stay for ever."""
        ring = Ring()
        memory.settle()
        del ring
        memory.settle()
        assert not any(type(item) is Ring for item in gc.get_objects())
