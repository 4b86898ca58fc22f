"""In which format a client wants metrics, whatever its header says."""

from __future__ import annotations

import re

from prometheus_client.exposition import choose_encoder

from fabricmon.sinks.template import Encoder

_SOUND = re.compile(r"[a-z/-]{1,40}; version=[0-9.]{1,12}(?:; [a-z0-9=-]{1,40}){0,2}")
"""A content type that repeats nothing but a plain version of what a client wrote."""


def choose(accept: str) -> tuple[Encoder, str]:
    """Return what writes the format that an ``Accept`` header prefers, and its name.

    A version that is none gets what every client can read.
    """
    try:
        encoder, content_type = choose_encoder(accept)
    except (TypeError, ValueError):
        return choose_encoder("")
    return (
        (encoder, content_type)
        if _SOUND.fullmatch(content_type)
        else choose_encoder("")
    )
