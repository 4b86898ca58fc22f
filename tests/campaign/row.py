"""A row of the campaign: a fault, what is expected, and the guard that sees to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.campaign.scene import Scene


@dataclass(frozen=True, slots=True)
class Guard:
    """The code that a row depends on: ``old`` stands once in ``file``.

    With ``new`` in its place the row must fail; ``file`` is below the package.
    """

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its name, what is done, what must hold then, and how it is played."""

    name: str
    done: str
    expected: str
    guard: Guard
    play: Callable[[Scene], None]
