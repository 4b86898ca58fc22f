"""Messages that list NICs or interfaces, and what messages teach of their process."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_codes import is_local_address, is_local_interface
from fabricmon.parse.nccl_context import Nic, ProcessFacts
from fabricmon.parse.nccl_draft import Draft
from fabricmon.parse.text import decimal
from fabricmon.value import Value

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_MOST_ITEMS = 64  # of one list

_NIC = re.compile(
    r"(?:\[(?P<index>\d{1,4})\](?:=\{(?:\[\d{1,4}\] ?)?)?(?=[A-Za-z]))?"
    r"(?P<device>[A-Za-z][\w.-]{0,62}):(?P<port>\d{1,3})"
    r"(?::(?P<rail>\d{0,4}))?(?::(?P<plane>\d{1,4}))?"
    r"/(?P<link_layer>IB|RoCE)(?P<sharp>/SHARP)?"
)
_INTERFACE = re.compile(r"(?:\[\d{1,4}\])?([^\s:\[\]]{1,64}):(\S{1,120}?)<\d{1,5}>")


class Interface(Value, frozen=True):
    """An interface in a list, with its address."""

    name: str
    address: str


def interfaces(text: str) -> Iterator[Interface]:
    """Yield the interfaces of ``[0]eth0:10.0.0.1<0> [1]eth1:fe80::1%eth1<0>``."""
    for number, match in enumerate(_INTERFACE.finditer(text)):
        if number >= _MOST_ITEMS:
            return
        yield Interface(match[1], match[2])


Spread = Callable[[Draft], list[Draft]]


def _nics(draft: Draft) -> list[Draft]:
    """Return an event for each port of a list; none is an event of its own."""
    text = str(draft.fields.pop("nics", ""))
    found: list[Draft] = []
    index = ""
    for match in _NIC.finditer(text):
        if len(found) >= _MOST_ITEMS:
            break
        index = match["index"] or index
        one = replace(draft, device=match["device"], port=decimal(match["port"]))
        told = {name: match[name] for name in ("rail", "plane", "link_layer")}
        one.fields = {**draft.fields, "nic": index, "sharp": int(bool(match["sharp"]))}
        one.fields.update((name, value) for name, value in told.items() if value)
        found.append(one)
    for one in found:
        one.fields["ports"] = len(found)
    if not found:
        draft.kind = "nic_missing"
    return found or [draft]


def _socket_list(draft: Draft) -> list[Draft]:
    """Return the list, and an event for each interface that leads nowhere.

    The library uses all it lists. One that only its name makes doubtful, behind others,
    is no alarm: faster ones go first.
    """
    listed = list(interfaces(str(draft.fields.get("interfaces", ""))))
    if listed:
        draft.device = listed[0].name
    doubtful = [
        _suspicious(draft, each, _INFO if place and not local else _WARNING)
        for place, each in enumerate(listed)
        if (local := is_local_address(each.address)) or is_local_interface(each.name)
    ]
    return [draft, *doubtful]


def _bootstrap(draft: Draft) -> list[Draft]:
    """Return the list, and an event for each interface that leads nowhere."""
    listed = list(interfaces(str(draft.fields.get("interfaces", ""))))
    if listed:
        draft.device = listed[0].name
    doubtful = [
        _suspicious(draft, each, _WARNING)
        for each in listed
        if is_local_address(each.address) or is_local_interface(each.name)
    ]
    return [draft, *doubtful]


def _suspicious(draft: Draft, interface: Interface, severity: LogSeverity) -> Draft:
    return replace(
        draft,
        kind="suspicious_interface",
        severity=severity,
        device=interface.name,
        cause="wrong_interface",
        fields={"address": interface.address},
    )


SPREAD: dict[str, Spread] = {"T1": _nics, "T2": _socket_list, "S10": _bootstrap}

Learn = Callable[[Draft, ProcessFacts], ProcessFacts]


def _nic_listed(draft: Draft, facts: ProcessFacts) -> ProcessFacts:
    index = draft.text("nic")
    if not index or draft.device is None:
        return facts
    known = facts.nic(index)
    if known is not None and known.device != draft.device:  # merged: the first names it
        return facts
    return facts.with_nic(Nic(index, draft.device, draft.port))


def _first_interface(draft: Draft, facts: ProcessFacts) -> ProcessFacts:
    if draft.kind != "net_socket_list":
        return facts
    return replace(facts, interface=draft.device)


def _network_known(draft: Draft, facts: ProcessFacts) -> ProcessFacts:
    return replace(facts, on_sockets=draft.kind == "net_fallback_socket")


def _gdr_known(draft: Draft, facts: ProcessFacts) -> ProcessFacts:
    nic = facts.nic(draft.text("nic") or "")
    if nic is None or draft.kind == "gdr_disabled":
        return facts
    return facts.with_nic(replace(nic, direct=True))


def _rdma_wanted(_draft: Draft, facts: ProcessFacts) -> ProcessFacts:
    return replace(facts, rdma_wanted=True)


def _rdma_plugin(draft: Draft, facts: ProcessFacts) -> ProcessFacts:
    return _rdma_wanted(draft, facts) if draft.status != "Socket" else facts


def _rdma_missed(_draft: Draft, facts: ProcessFacts) -> ProcessFacts:
    return replace(facts, rdma_wanted=True, rdma_missed=True)


def _device_missed(draft: Draft, facts: ProcessFacts) -> ProcessFacts:
    if draft.kind == "ib_no_device" and facts.rdma_wanted:
        return replace(facts, rdma_missed=True)
    return facts


def _gpu_failed(_draft: Draft, facts: ProcessFacts) -> ProcessFacts:
    return replace(facts, gpu_failed=True)


def _rank_known(draft: Draft, facts: ProcessFacts) -> ProcessFacts:
    return facts if draft.rank is None else facts.with_rank(draft.rank)


def _version_known(draft: Draft, facts: ProcessFacts) -> ProcessFacts:
    version = draft.status if isinstance(draft.status, str) else None
    return replace(facts, library=draft.library, version=version)


LEARN: dict[str, Learn] = {
    "T1": _nic_listed,
    "T2": _first_interface,
    "T3": _network_known,
    **dict.fromkeys(("T4", "T4b"), _rdma_plugin),
    "T7": _gdr_known,
    **dict.fromkeys(("V4", "V4b", "O2", "O2b", "O2c", "O2d"), _rdma_missed),
    **dict.fromkeys(("V5", "V7"), _device_missed),
    **dict.fromkeys(("X6", "N3", "N3b"), _gpu_failed),
    **dict.fromkeys(("I1", "I2"), _rank_known),
    "E2": _version_known,
}
