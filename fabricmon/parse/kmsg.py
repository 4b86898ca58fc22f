"""Lines of the kernel's log: which ones concern RDMA devices, and what they say.

A line is one record's text, without priority and time stamp. It is hostile: it is cut,
its control characters go, and patterns run only on lines that hold their anchor.
"""

from __future__ import annotations

import re

from fabricmon.parse.kernel_event import KernelEvent
from fabricmon.parse.kmsg_rules import PCI_ADDRESS, RULES, KernelRule
from fabricmon.parse.text import decimal, number
from fabricmon.value import Value

MAX_LINE = 1024
"""Characters of a line that are judged; the kernel's own limit is about that."""

MAX_TEXT = 200
"""Characters kept of a line."""

_CONCERNS = re.compile(
    rb"\b(?:mlx5_core|mlx4_en|bnxt_en|bnxt_re|ice|irdma|efa|ionic|ionic_rdma) "
    rb"[0-9a-f]{4,8}:|infiniband \w|\bAER: |PCIe Bus Error|NETDEV WATCHDOG|DPC: "
    rb"|pciehp: |available PCIe bandwidth, limited|inaccessible"
)
"""What a line must hold that leaves the door to the node: the rest is not ours."""

_HEAD = re.compile(
    rf"(?P<driver>[a-z][a-z0-9_]{{1,31}}) (?P<address>{PCI_ADDRESS})"
    r"(?: (?P<netdev>[^\s:]{1,63}|\(unnamed net_device\) \(\w{1,20}\)))?: "
)
_RDMA_HEAD = re.compile(
    r"(?P<driver>infiniband|bnxt_re|irdma) (?P<device>[A-Za-z][\w.-]{0,62}): "
)


class _Ready(Value, frozen=True):
    """A rule with its pattern compiled."""

    rule: KernelRule
    pattern: re.Pattern[str]


_READY = tuple(_Ready(rule, re.compile(rule.pattern)) for rule in RULES)


class _Line(Value, frozen=True):
    """A line taken apart; ``device`` is an RDMA device."""

    message: str
    driver: str | None = None
    address: str | None = None
    netdev: str | None = None
    device: str | None = None


def concerns(line: bytes) -> bool:
    """Tell whether a line may be about an RDMA device; all else is nobody's business."""
    return _CONCERNS.search(line, 0, MAX_LINE) is not None


def recognise(line: str, at: float) -> KernelEvent | None:
    """Return what a line says, None where no rule knows it."""
    text = "".join(c if c.isprintable() else " " for c in line[:MAX_LINE])
    parts = _taken_apart(text)
    for ready in _READY:
        rule = ready.rule
        if rule.drivers and parts.driver not in rule.drivers:
            continue
        if rule.anchor not in parts.message:
            continue
        match = ready.pattern.search(parts.message)
        if match is not None:
            return _event(rule, parts, match.groupdict(), text[:MAX_TEXT], at)
    return None


def _taken_apart(text: str) -> _Line:
    head = _HEAD.match(text)
    if head is not None:
        netdev, driver = head["netdev"], head["driver"]
        is_device = driver in {"efa", "irdma"}  # which have no network device
        return _Line(
            text[head.end() :],
            driver,
            head["address"],
            None if is_device else netdev,
            netdev if is_device else None,
        )
    head = _RDMA_HEAD.match(text)
    if head is not None:
        return _Line(text[head.end() :], head["driver"], device=head["device"])
    return _Line(text)


def _event(
    rule: KernelRule,
    parts: _Line,
    found: dict[str, str | None],
    text: str,
    at: float,
) -> KernelEvent:
    return KernelEvent(
        at=at,
        rule=rule.id,
        kind=rule.kind,
        severity=rule.severity,
        text=text,
        address=found.get("source") or parts.address,
        netdev=found.get("netdev") or parts.netdev,
        device=parts.device,
        watts=decimal(found.get("watts") or ""),
        gbps=number(found.get("gbps") or ""),
        capable_gbps=number(found.get("capable") or ""),
        limited_by=found.get("bridge"),
        bits=_bits(found),
    )


def _bits(found: dict[str, str | None]) -> int | None:
    """Return the word of flags of a line, without those that its mask puts aside."""
    word, mask = found.get("bits"), found.get("mask")
    return None if not word else int(word, 16) & ~int(mask or "0", 16)
