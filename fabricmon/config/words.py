"""Types of values, and what a section is."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Seconds = Annotated[float, Meta(ge=0.05, le=1e7)]
Pause = Annotated[float, Meta(ge=0, le=1e7)]
Timeout = Annotated[float, Meta(ge=0.05, le=3600)]
Count = Annotated[int, Meta(ge=1)]
Ratio = Annotated[float, Meta(ge=0, le=1)]
Mode = Literal["off", "shadow", "on"]


class Section(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A closed group of keys."""
