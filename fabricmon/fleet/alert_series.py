"""``ALERTS``, the series that a Prometheus writes of its alerts, out of a replay.

Dashboards show and annotate by it. Nothing evaluates rules while a kept folder is
looked at, so it is backfilled like everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fabricmon.fleet.firing import Firing

NAME = "ALERTS"

HEAD = f"# TYPE {NAME} gauge\n".encode()
"""What stands before the samples of all fleets."""


def alert_series(firings: Iterable[Firing], times: range) -> Iterator[bytes]:
    """Yield its samples at ``times`` (Unix seconds) while an alert fires."""
    named = ((_labels(firing), firing) for firing in firings)
    for labels, firing in sorted(named, key=lambda pair: (pair[0], pair[1].ended)):
        for time in times:
            if firing.life.fired <= time < firing.ended:
                yield f"{NAME}{{{labels}}} 1 {time:.3f}\n".encode()


def _labels(firing: Firing) -> str:
    named = {each.name: each.value for each in firing.labels} | {"alertstate": "firing"}
    return ",".join(
        f'{name}="{escaped(value)}"' for name, value in sorted(named.items())
    )


def escaped(value: str) -> str:
    """Return a value of a label as it stands within quotes."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
