"""How long it takes from a port that goes down to the notification of a person.

Real agents, Prometheus, rules and Alertmanager on the loopback interface, all with
the settings that are shipped: an agent confirms an outage for ten seconds, scrapes and
evaluations are 15 s apart, a group of alerts waits for 30 s. Ports of a node with a job
go down one after another; each is a page of its own.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import msgspec

sys.path.append(str(Path(__file__).parent.parent))

from fabricmon.config import Config
from tests.fleet.loopback import NODES, RAILS, Pace, fleet

APART_SECONDS = 7
"""Longer than what makes outages one, and no divisor of the other periods."""

PORTS = 9
LIMIT_SECONDS = 120


def main() -> None:
    """Measure and print."""
    shipped = msgspec.to_builtins(Config())
    agent = {key: shipped[key] for key in ("periods", "deadlines", "link_state")}
    pace = Pace(agent, {}, scrape_seconds=15)
    places = [(node, device) for device in RAILS for node in NODES][:PORTS]
    went: dict[tuple[str, str], float] = {}
    told: dict[tuple[str, str], float] = {}
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as folder,
        fleet(Path(folder), pace) as running,
    ):
        for node in NODES:
            running.run_job(node, f"job-{node}")
        begun = time.monotonic()
        while len(told) < PORTS:
            now = time.monotonic()
            assert now - begun < PORTS * APART_SECONDS + LIMIT_SECONDS, told
            if len(went) < PORTS and now - begun >= len(went) * APART_SECONDS:
                place = places[len(went)]
                went[place] = now
                running.down(*place)
            for each in running.hook.deliveries(alertname="FabricPortDown"):
                at = each.labels["node"], each.labels["device"]
                assert each.path == "/page"
                told.setdefault(at, now)
            time.sleep(0.05)
    taken = sorted(told[place] - went[place] for place in went)
    print(
        f"port down to page, {PORTS} ports: {taken[0]:.1f} to {taken[-1]:.1f} s, "
        f"median {statistics.median(taken):.1f} s"
    )


if __name__ == "__main__":
    main()
