"""Every bar of the project, measured in one run of some ten minutes.

Prints a table and writes it between its markers in docs/benchmarks.md. What takes hours
(detection, healthy life, the fleet's rules, an hour's memory, the test suite) is taken
from what it left there, with its date and commit; FULL=1 runs it before. The exit
status tells of errors, never of bars that were missed.

    python bench/bench_bars.py [--only WORD ...]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import bars
from bars import OPEN, Row, verdict
from bars_long import (
    DOCUMENT,
    FULL,
    ROOT,
    Earlier,
    Rows,
    detection,
    fleet_rules,
    healthy,
    kept,
)
from markers import between, now_and_here, replace_between

RATIO, MEMORY_MIB, GROWTH_MIB, SHARE = 0.5, 45.0, 1.0, 0.01
REST_READS, WINDOW_READS = 40, 120
SCAN, ANCHORS, SCAN_MEGABYTES = 200, 16, 300
REPLAY_BURSTS, REPLAY = 200, 1000
READY_SECONDS, EXIT_SECONDS = 1.0, 2.0
NODE_SERIES, PORT_SERIES = 60, 80
SUITE_MINUTES = 10
COST_MINUTES, LIFE_MINUTES, HOUR = 3, 4.0, 60.0
SERIES_SECONDS = 20

HOUR_BAR = "memory after an hour: 45 MiB, growth 1 MiB"
SUITE_BAR = "test suite on 2 cores: 10 min"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="parts to measure")
    parser.add_argument("--out", type=Path, default=DOCUMENT)
    options = parser.parse_args()
    earlier = bars.read(between(options.out, bars.NAME))
    rows: list[Row] = []
    failed = False
    for name, measure in PARTS.items():
        if options.only and name not in options.only:
            continue
        begun, load = time.monotonic(), bars.load_now()
        try:
            for row in measure(earlier):
                rows.append(_dated(row, load))
                print(f"{row.met:7} {row.bar}: {row.figure}", flush=True)
        except Exception:  # noqa: BLE001 - the other bars are measured all the same
            failed = True
            print(f"ERROR in {name}:\n{traceback.format_exc()}", flush=True)
            rows.append(_dated(Row(name, "could not be measured", OPEN, ""), load))
        print(f"  ({name}: {time.monotonic() - begun:.0f} s)", flush=True)
    table = "\n".join(bars.render(rows))
    print(table)
    if not options.only:
        head = f"Of {now_and_here()}; load before and after each part: see there.\n\n"
        replace_between(options.out, bars.NAME, head + table)
    sys.exit(failed)


def _dated(row: Row, load: str) -> Row:
    """Say of what was measured just now when that was."""
    if row.measured:
        return row
    after = bars.load_now()
    return replace(row, measured=bars.today(), load=f"{load} to {after}")


# What takes long, and is kept


def suite(earlier: Earlier) -> Rows:
    """How long all tests take, on the processors that there are."""
    if not FULL:
        yield kept(earlier, SUITE_BAR, "time make test")
        return
    begun = time.monotonic()
    done = subprocess.run(["make", "test"], cwd=ROOT, check=False)
    minutes = (time.monotonic() - begun) / 60
    passed = "all passed" if done.returncode == 0 else f"status {done.returncode}"
    met = verdict(met=minutes <= SUITE_MINUTES and done.returncode == 0)
    yield Row(SUITE_BAR, f"{minutes:.1f} min, {passed}", met, "time make test")


# What is measured in every run


def corpora(_: Earlier) -> Rows:
    """Recorded logs and tool outputs, by the tests that know what they hold."""
    for bar, files in (
        (
            "logs of NCCL: every event, nothing invented, all lines survive",
            ("parse/test_nccl_cases.py", "parse/test_hostile.py"),
        ),
        (
            "outputs of tools: every field, every verdict",
            ("parse/test_cases.py", "cli/test_check_cases.py"),
        ),
    ):
        paths = [f"tests/{file}" for file in files]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, *paths], cwd=ROOT, capture_output=True, text=True, check=False
        )
        lines = done.stdout.strip().splitlines() or ["no answer"]
        figure = lines[-1].partition(" in ")[0]
        met = verdict(met=done.returncode == 0)
        yield Row(bar, figure, met, f"pytest {' '.join(paths)}")


def cost(_: Earlier) -> Rows:
    """CPU per value beside node_exporter."""
    from bench_node_exporter import spread  # noqa: PLC0415 - each part loads its own
    from peers import NODE_EXPORTER  # noqa: PLC0415
    from side_by_side import Size, compare  # noqa: PLC0415

    bar = "CPU per exported value against node_exporter's infiniband collector: 0.5"
    command = "python bench/bench_node_exporter.py"
    if NODE_EXPORTER.missing is not None:
        yield Row(bar, NODE_EXPORTER.missing, OPEN, command)
        return
    done = compare(Size(8), (NODE_EXPORTER,), COST_MINUTES)
    ours, other = done.costs
    ratios = done.ratios(other)
    figure = (
        f"{spread(ratios, 2)}: {ours.value_us:.1f} us, {ours.values} values, against "
        f"{other.value_us:.1f} us, {other.values} values"
    )
    met = verdict(met=statistics.median(ratios) <= RATIO)
    yield Row(bar, figure, met, command)


def life(earlier: Earlier) -> Rows:
    """CPU and memory of an agent at work."""
    from bench_agent import live  # noqa: PLC0415

    usual, fast = live(HOUR if FULL else LIFE_MINUTES)
    command = "MINUTES=4 python bench/bench_agent.py"
    yield Row(
        "CPU of the agent, 8 HCAs, bursts: 1 % of a core",
        f"{usual.share:.2%}, {usual.wakeups:.1f} wake-ups/s",
        verdict(met=usual.share <= SHARE),
        command,
    )
    hour = "MINUTES=60 python bench/bench_agent.py"
    if FULL:
        yield Row(
            HOUR_BAR,
            f"{usual.resident[-1]:.1f} MiB, {usual.growth_mib:+.2f} MiB",
            verdict(
                met=usual.resident[-1] <= MEMORY_MIB and usual.growth_mib <= GROWTH_MIB
            ),
            hour,
        )
    else:
        yield kept(earlier, HOUR_BAR, hour)
    yield Row(
        "the same after some minutes, periods five times as fast",
        f"{fast.resident[-1]:.1f} MiB ({fast.proportional:.1f} its own), "
        f"{fast.growth_mib:+.2f} MiB; as usual {usual.resident[-1]:.1f} MiB",
        verdict(
            met=max(fast.resident[-1], usual.resident[-1]) <= MEMORY_MIB
            and fast.growth_mib <= GROWTH_MIB
        ),
        command,
    )


def firmware(_: Earlier) -> Rows:
    """Reads that reach the firmware."""
    from bench_firmware import count  # noqa: PLC0415

    command = "python bench/bench_firmware.py"
    rest, work = count(netdevs=True), count(netdevs=True, works=True)
    yield Row(
        "firmware reads at rest, 8 ports: 40 a second",
        f"{rest.rate:.1f}",
        verdict(met=rest.rate <= REST_READS),
        command,
    )
    windows = work.windows()
    mean = statistics.fmean(windows)
    yield Row(
        "firmware reads in a burst window: 120 a second",
        f"{mean:.0f}, {max(windows):.0f} in the worst, {work.rate:.0f} over all",
        verdict(met=mean <= WINDOW_READS),
        command,
    )


def log_scan(_: Earlier) -> Rows:
    """Megabytes of log a second, and how many anchors select lines."""
    from bench_log_scan import chosen, speed  # noqa: PLC0415

    from fabricmon.parse.nccl import RuleTable  # noqa: PLC0415

    name, read = chosen()
    found = speed(read, SCAN_MEGABYTES)
    anchors = len(RuleTable.of().anchors)
    yield Row(
        "log scan, full table and ten rows of an operator: 200 MB/s, 16 anchors",
        f"{found:.0f} MB/s ({name}), {anchors} anchors",
        verdict(met=found >= SCAN and anchors <= ANCHORS),
        "python bench/bench_log_scan.py 1000",
    )


def replays(_: Earlier) -> Rows:
    """How fast a node is replayed."""
    from bench_replay import replay  # noqa: PLC0415

    for bursts, least in ((True, REPLAY_BURSTS), (False, REPLAY)):
        times = replay(bursts=bursts).times
        which = "with" if bursts else "without"
        yield Row(
            f"replay {which} bursts: {least:,} x real time",
            f"{times:,.0f}",
            verdict(met=times >= least),
            "python bench/bench_replay.py",
        )


def start_and_stop(_: Earlier) -> Rows:
    """Seconds to READY and to the end."""
    from bench_lifecycle import measure  # noqa: PLC0415

    command = "python bench/bench_lifecycle.py"
    well, ill = measure(trouble=False), measure(trouble=True)
    ready = [max(one.ready for one in lives) for lives in (well, ill)]
    stopped = max(one.stopped for one in (*well, *ill))
    yield Row(
        "start to READY: 1 s",
        f"{ready[0]:.2f} s, {ready[1]:.2f} s with a read that hangs",
        verdict(met=max(ready) <= READY_SECONDS),
        command,
    )
    yield Row(
        "SIGTERM to exit, dead broker and hung read: 2 s",
        f"{stopped:.2f} s",
        verdict(met=stopped <= EXIT_SECONDS),
        command,
    )


def series(_: Earlier) -> Rows:
    """Lines of /metrics of nodes of some sizes."""
    from programs import compressed, fabricmon, get  # noqa: PLC0415
    from tree import Node  # noqa: PLC0415

    sizes = ((2, 0), (8, 0), (8, 16))
    with TemporaryDirectory(dir="/dev/shm") as folder, ExitStack() as stack:
        running = []
        for ports, functions in sizes:
            root = Path(folder, f"{ports}x{functions}")
            node = Node(root, ports, functions)
            stack.enter_context(node.moving())
            running.append(stack.enter_context(fabricmon(root, compressed())))
        time.sleep(SERIES_SECONDS)
        texts = [get(each.url).splitlines() for each in running]
    found = [sum(not line.startswith("#") for line in text) for text in texts]
    met = all(
        total <= NODE_SERIES + PORT_SERIES * ports
        for (ports, _), total in zip(sizes, found, strict=True)
    )
    port = (found[1] - found[0]) / (sizes[1][0] - sizes[0][0])
    yield Row(
        "series: 80 a port and 60 a node, virtual functions folded",
        f"{port:.1f} a port, {found[0] - port * sizes[0][0]:.0f} a node "
        f"({found[1]} of 8 ports); {found[2] - found[1]:+} of 128 virtual functions",
        verdict(met=met),
        "python bench/bench_node_exporter.py",
    )


PARTS: dict[str, Callable[[Earlier], Rows]] = {
    "detection": detection,
    "corpora": corpora,
    "cost": cost,
    "life": life,
    "firmware": firmware,
    "log-scan": log_scan,
    "replay": replays,
    "start": start_and_stop,
    "fleet-rules": fleet_rules,
    "series": series,
    "healthy": healthy,
    "suite": suite,
}


if __name__ == "__main__":
    main()
