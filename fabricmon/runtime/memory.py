"""How often Python looks for garbage that only refers to itself.

An agent makes thousands of records a minute; next to none are in a cycle, and all
but the newest are freed as soon as they are replaced. By default Python looks through
the young ones several times a second and now and then through everything that was
ever loaded, which took a fifth of the agent's time.
"""

from __future__ import annotations

import gc

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
