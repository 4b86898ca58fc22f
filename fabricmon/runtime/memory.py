"""How often Python looks for garbage that only refers to itself, and what is kept free.

An agent makes thousands of records a minute; next to none are in a cycle, and all
but the newest are freed as soon as they are replaced. By default Python looks through
the young ones several times a second and now and then through everything that was
ever loaded, which took a fifth of the agent's time.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

ALLOCATIONS = 20_000
"""Objects made and not freed before the young ones are looked through; 700 usually."""

YOUNG_ROUNDS = 20
"""So many rounds before the middle-aged are looked through; 10 usually."""

MIDDLE_ROUNDS = 50
"""So many of these before all are; 10 usually."""


def settle() -> None:
    """Leave out what is there now, and look rarely; to be called after start-up.

    Call it again once much of what was there is replaced, such as by a new
    configuration: what is garbage by then is freed.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS, YOUNG_ROUNDS, MIDDLE_ROUNDS)
    gc.enable()


_TRIM_THRESHOLD, _ARENA_MAX = -1, -8  # M_TRIM_THRESHOLD, M_ARENA_MAX (malloc.h)
_TRIM_BYTES = 128 << 10  # glibc's own default, which it raises by itself unless told


def keep_little_free() -> None:
    """Have the C library give memory back; to be called before threads are started.

    glibc gives each thread a heap of its own and keeps what was freed in each: half a
    MiB at rest, and more after a storm. Threads that take turns at the interpreter
    need one (mallopt(3); the same as ``MALLOC_ARENA_MAX=1`` and
    ``MALLOC_TRIM_THRESHOLD_=131072``). Other C libraries have neither the heaps nor
    the call.
    """
    with suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_ARENA_MAX, 1)
        mallopt(_TRIM_THRESHOLD, _TRIM_BYTES)
