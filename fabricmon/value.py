"""What records are made of: immutable, equal by what they hold, cheap to have.

Dataclasses write their methods anew for each class: 13 KiB of code for each of the
300 that an agent loads, and each field is set by a call. A `Value` shares methods
written in C, is made eight times as fast, and is still a dataclass to `dataclasses`.
"""

from __future__ import annotations

from copy import copy
from dataclasses import Field, dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec


@dataclass
class _Model:
    """Its field is what the others are copies of."""

    field: object


class _Fields:
    """The fields of a class as `dataclasses` wants them, made when it first asks."""

    def __get__(self, _: object, owner: type[msgspec.Struct]) -> dict[str, Field[Any]]:
        """Return a field for each of the class's names."""
        return _fields(owner)


@cache
def _fields(owner: type[msgspec.Struct]) -> dict[str, Field[Any]]:
    found = {name: copy(fields(_Model)[0]) for name in owner.__struct_fields__}
    for name, field in found.items():
        field.name = name
    return found


class Value(msgspec.Struct, frozen=True):
    """A record that never changes; `dataclasses.replace` and `fields` work on it.

    Where a field is not to be compared, a frozen dataclass is still the way. A default
    that has to be made is `msgspec.field`, not that of `dataclasses`.
    """

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    else:
        __dataclass_fields__ = _Fields()


class State(msgspec.Struct):
    """What changes in place and is cheap to have all the same: for what a module keeps.

    A field that its owner makes from others is for a dataclass.
    """

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    else:
        __dataclass_fields__ = _Fields()
