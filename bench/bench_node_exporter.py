"""CPU, memory, start and series beside other exporters, on the same files in one run.

Nodes of 2 to 64 mlx5 ports, without and with 16 virtual functions each. Traffic moves.
See `side_by_side` for what is counted; sizes may be given as arguments: ``8 16x16``.

    MINUTES=3 python bench/bench_node_exporter.py [--out FILE] [SIZE ...]
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from markers import now_and_here, replace_between
from peers import available
from side_by_side import Comparison, Cost, Size, compare

MINUTES = int(os.environ.get("MINUTES", "3"))
"""Minutes with scrapes, of 12 rounds each."""

SIZES = ("2", "8", "16", "64", "2x16", "8x16", "16x16", "64x16")
MANY = 500  # so many functions are not polled five times as fast as usual
SLOWLY = 2.5
NODE_SERIES, PORT_SERIES = 60, 80
"""The bar: so many series a node, and so many more for each port."""


def main() -> None:
    """Measure every size and print tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("sizes", nargs="*", default=SIZES, metavar="PORTSxFUNCTIONS")
    options.add_argument("--out", type=Path, help="document to write to")
    chosen = options.parse_args()
    peers, done = available(), []
    for text in chosen.sizes:
        done.append(compare(size_of(text), peers, MINUTES))
        print("\n".join(table(done[-1:])), flush=True)
    done.sort(key=lambda each: (each.size.functions, each.size.ports))
    told = "\n".join(report(done))
    print(told)
    if chosen.out is not None:
        replace_between(chosen.out, "bench-beside", told)


def size_of(text: str) -> Size:
    """Read a size such as ``8`` or ``8x16``."""
    ports, _, functions = text.partition("x")
    size = Size(int(ports), int(functions or 0))
    many = size.ports * (1 + size.functions) > MANY
    return replace(size, compression=SLOWLY) if many else size


def report(done: Sequence[Comparison]) -> Iterator[str]:
    """Yield everything for the document."""
    loads = [load for each in done for load in each.load]
    yield (
        f"Of {now_and_here()}, {MINUTES} minutes of 12 rounds with scrapes and "
        f"{MINUTES - 1} without, of each size; load {min(loads):.1f} to "
        f"{max(loads):.1f}. CPU is user and system time, the median minute and in "
        "brackets the least and the most.\n"
    )
    yield from table(done)
    yield ""
    yield from series(done)


def table(done: Sequence[Comparison]) -> Iterator[str]:
    """Yield what every program costs."""
    yield (
        "| ports | VFs a port | program | values | of ports | CPU ms a round | "
        "of it a scrape | CPU us a value | ratio | RSS MiB | PSS MiB | start s | "
        "scrape ms, median and p95 |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for each in done:
        for cost in each.costs:
            yield _row(each, cost)


def _row(each: Comparison, cost: Cost) -> str:
    ratio = "" if cost is each.costs[0] else spread(each.ratios(cost), 2)
    ordered = sorted(cost.latencies)
    slow = ordered[int(len(ordered) * 0.95)]
    cells = (
        each.size.ports,
        each.size.functions,
        cost.name,
        cost.values,
        cost.port_values,
        spread(cost.scraped, 2),
        f"{cost.scrape_ms:.2f}" if cost.quiet else "",
        f"{cost.value_us:.2f}",
        ratio,
        f"{cost.resident_mib:.1f}",
        f"{cost.proportional_mib:.1f}",
        f"{cost.start_seconds:.2f}",
        f"{statistics.median(ordered):.1f}, {slow:.1f}",
    )
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def spread(values: Sequence[float], digits: int) -> str:
    """Return the median, with the extremes in brackets."""
    low, high = min(values), max(values)
    middle = f"{statistics.median(values):.{digits}f}"
    return f"{middle} ({low:.{digits}f}-{high:.{digits}f})" if low != high else middle


def series(done: Sequence[Comparison]) -> Iterator[str]:
    """Yield how the number of our series grows."""
    yield "| ports | VFs a port | series | bar: 60 a node + 80 a port |"
    yield "|---|---|---|---|"
    for each in done:
        most = NODE_SERIES + PORT_SERIES * each.size.ports
        found = each.costs[0].values
        met = "" if found <= most else ", **not met**"
        yield f"| {each.size.ports} | {each.size.functions} | {found} | {most}{met} |"
    plain = [each for each in done if not each.size.functions]
    slopes = [
        (two.costs[0].values - one.costs[0].values) / (two.size.ports - one.size.ports)
        for one, two in pairwise(plain)
    ]
    if slopes:
        first = plain[0]
        node = first.costs[0].values - slopes[0] * first.size.ports
        yield f"\nThat is {spread(slopes, 1)} a port and {node:.0f} a node."


if __name__ == "__main__":
    main()
