"""Devices that differ from their like: firmware, rate, PCIe width (F29, N29).

What is usual is what most equal boards of the cluster have. While nodes change their
firmware an update is under way, and a difference is information. Many nodes that differ
are one story: half an update, not so many odd nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet.comparing import Site, laid_out, told
from fabricmon.fleet.promql import duration
from fabricmon.fleet.recordings_signs import INACTIVE
from fabricmon.fleet.rule import Alert, Label, Notice, Recording

FIRMWARE = "device:fabricmon_firmware:info"
CHANGED = "cluster:fabricmon_firmware_changed:nodes"
ALIKE = "node:fabricmon_firmware:devices"
BOARDS = "board:fabricmon_firmware:devices"
NODES = "board:fabricmon_firmware:nodes"
ODD = "node:fabricmon_firmware_odd:devices"
RATE = "node:fabricmon_board_rate:min"
WIDTH = "node:fabricmon_board_pci_width:min"

_CHANGED_SECONDS = 1800
"""Looks back at what a device had: a node that boots for it is away for minutes."""


def recordings(site: Site) -> Iterator[Recording]:
    """Yield them."""
    info = site.series(
        "fabricmon_infiniband_device_info",
        'board_id!="",firmware_version!="",pf_address=""',
    )
    cluster, device = site.cluster, site.device
    yield Recording(
        FIRMWARE,
        f"group by ({device}, board_id, firmware_version) ({info})",
        "Firmware of each device, functions left out.",
    )
    yield Recording(
        ALIKE,
        f"count by ({site.node}, board_id, firmware_version) ({FIRMWARE})",
        "Devices of a node by board and firmware.",
        level=2,
    )
    yield Recording(
        BOARDS,
        f"sum by ({cluster}, board_id, firmware_version) ({ALIKE})",
        "Devices by board and firmware.",
        level=3,
    )
    yield Recording(
        NODES,
        f"count by ({cluster}, board_id) (group by ({site.node}, board_id) ({ALIKE}))",
        "Nodes with such a board.",
        level=3,
    )
    past = f"last_over_time({FIRMWARE}[{duration(_CHANGED_SECONDS)}])"
    yield Recording(
        CHANGED,
        laid_out(f"""
            count by ({cluster}) (
              group by ({site.node}) (
                count by ({device}, board_id) ({past}) > 1
              )
            )
        """),
        "Nodes that changed the firmware of a device within half an hour.",
        level=2,
    )
    yield Recording(ODD, _odd(site), "Devices of a node with an odd firmware.", level=4)
    yield from _measures(site)


def _odd(site: Site) -> str:
    """Return the devices of nodes that have another firmware than most."""
    limits = site.options.comparisons.drift
    board = f"{site.cluster}, board_id"
    return laid_out(f"""
        {ALIKE}
        and on ({board}, firmware_version) (
          {BOARDS} < on ({board}) group_left () max by ({board}) ({BOARDS})
        )
        and on ({board}) {NODES} >= {limits.least_nodes}
    """)


def _measures(site: Site) -> Iterator[Recording]:
    """Yield the least rate and width of each node's boards."""
    rate = site.series("fabricmon_infiniband_rate_bytes_per_second")
    width = site.series("fabricmon_pci_current_link_width")
    boards = f"group by ({site.device}, board_id) ({FIRMWARE})"
    by = f"{site.node}, board_id"
    yield Recording(
        RATE,
        laid_out(f"""
            max by ({by}) (
              max by ({site.device}) ({rate} unless on ({site.port}) {INACTIVE})
              * on ({site.device}) group_left (board_id) {boards}
            )
        """),
        "The highest rate of a node's ports with equal boards: a bad link is another "
        "story.",
        level=2,
    )
    yield Recording(
        WIDTH,
        laid_out(f"""
            max by ({by}) (
              min by ({site.device}) ({width})
              * on ({site.device}) group_left (board_id) {boards}
            )
        """),
        "The most PCIe lanes of a node's equal boards: one bad slot is another story.",
        level=2,
    )


def alerts(site: Site) -> Iterator[Alert]:
    """Yield the alerts."""
    limits = site.options.comparisons.drift
    yield from _firmware(site)
    yield _below(
        site,
        ("FabricRateDrift", RATE, limits.hold_seconds),
        "all ports run at {{ $value | humanizePercentage }} of the rate of equal boards",
    )
    yield _below(
        site,
        ("FabricPcieDrift", WIDTH, limits.width_seconds),
        "all devices have {{ $value | humanizePercentage }} of the PCIe lanes of equal "
        "boards",
    )


def _firmware(site: Site) -> Iterator[Alert]:
    limits = site.options.comparisons.drift
    board, cluster = f"{site.cluster}, board_id", site.cluster
    odd = f"count by ({board}) (group by ({site.node}, board_id) ({ODD}))"
    few = laid_out(f"""
        {odd} <= on ({board}) clamp_min({limits.single_ratio:g} * {NODES}, {limits.single_nodes})
    """)
    changed = f"max_over_time({CHANGED}[{duration(limits.update_seconds)}])"
    yield Alert(
        name="FabricFirmwareDrift",
        kind="config_drift",
        expr=laid_out(f"""
            label_replace(
              (
                {ODD} and on ({board}) ({few})
              ) unless on ({cluster}) {changed},
              "severity", "warning", "", ""
            )
            or
            label_replace(
              (
                {ODD} and on ({board}) ({few})
              ) and on ({cluster}) {changed},
              "severity", "info", "", ""
            )
        """),
        notice=Notice.INFO,
        summary=f"{{{{ $labels.{site.names.node} }}}}: {{{{ $value }}}} devices have "
        "firmware {{ $labels.firmware_version }}, most equal boards another",
        description="Board {{ $labels.board_id }}. Nodes of one job that differ behave "
        "differently under load; look for an update that was missed, or a card that "
        "was changed.",
        is_not="a fault of the device; during an update it is only information",
        for_seconds=limits.hold_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=_without_severity(),
        dashboard="fabricmon-node",
    )
    yield Alert(
        name="FabricFirmwareMixed",
        kind="config_drift",
        expr=laid_out(f"""
            {odd} > on ({board}) clamp_min({limits.single_ratio:g} * {NODES}, {limits.single_nodes})
        """),
        notice=Notice.INFO,
        summary="{{ $value }} nodes have another firmware on board "
        "{{ $labels.board_id }} than most",
        description="So many that it is an update under way, or one that stopped half "
        "way: finish it, or compare jobs only within one version.",
        is_not="a fault of these nodes",
        for_seconds=limits.hold_seconds,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("info"),
    )


def _without_severity() -> tuple[Label, ...]:
    return tuple(label for label in told("") if label.name != "severity")


def _below(site: Site, what: tuple[str, str, float], text: str) -> Alert:
    name, record, hold = what
    limits, board = site.options.comparisons.drift, f"{site.cluster}, board_id"
    return Alert(
        name=name,
        kind="config_drift",
        expr=laid_out(f"""
            (
              {record} / on ({board}) group_left () quantile by ({board}) (0.5, {record})
              < {limits.rate_ratio:g}
            )
            and on ({board}) (count by ({board}) ({record}) >= {limits.least_nodes})
        """),
        notice=Notice.INFO,
        summary=f"{{{{ $labels.{site.names.node} }}}}: {text}",
        description="Board {{ $labels.board_id }}, against the median node of the "
        "cluster. The node alone cannot see it, for all of its devices are alike: look "
        "at its firmware settings, its slots, and the leaf that it is on.",
        is_not="one bad link or slot: that is told of the port or device",
        for_seconds=hold,
        keep_seconds=site.options.pace.keep_seconds,
        labels=told("warning"),
        dashboard="fabricmon-node",
    )
