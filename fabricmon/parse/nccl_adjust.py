"""What a row cannot say by itself: severity, status and cause out of its values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from fabricmon.parse.log_event import LogLine, LogSeverity
from fabricmon.parse.nccl_codes import (
    CONNECT_CAUSES,
    EAGAIN,
    EFA_CAUSES,
    ENOMEM,
    SOCKET_CAUSES,
    STREAM_CAUSES,
    async_event,
    completion,
    errno_number,
    result_name,
)
from fabricmon.parse.nccl_context import ProcessFacts
from fabricmon.parse.nccl_draft import Draft, as_value
from fabricmon.parse.text import decimal

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

Adjust = Callable[[Draft, LogLine, ProcessFacts], None]

# What stands behind the status of a completion, in any order and version.
_TAIL = {
    "opcode": re.compile(r"opcode[= ](?:\w{1,40}\()?(\d+)"),
    "length": re.compile(r" (?:len|reqSize)[= ](\d+)"),
    "vendor_err": re.compile(r"vendor[_ ]err[= ](\d+)"),
    "request": re.compile(r"\((Send|Recv|Flush|Put|Gin\w{0,20})\)|req_type=(\w{1,40})"),
    "local_gid": re.compile(r"localGid ([0-9a-fA-F:.]{2,45})"),
    "remote_gid": re.compile(r"remoteGids? ?([0-9a-fA-F:.]{2,45})"),
    "qp": re.compile(r"qp(?:n|_num|Num)[= ](\d+)"),
}
_HCA = re.compile(r" hca ([A-Za-z][\w.-]{0,62})")
_OFI_CODE = re.compile(r"(?:RC: |\berr: )(-?\d{1,9})")
_OFI_PROVIDER_CODE = re.compile(r"(?:Error: |prov_errno: )(\d{1,9})")
_OFI_DEVICE = re.compile(r"\bdev: (\d{1,4})")
_LIBFABRIC_CODE = re.compile(r"prov_(?:err|errno): [^()\d]{0,80}\(?(\d{1,9})")
_LIBFABRIC_ERR = re.compile(r"\berr: (-?\d{1,9})")
_UCX_DEVICE = re.compile(r" on ([A-Za-z][\w.-]{0,62}):(\d{1,3})/")


def _completion(draft: Draft, line: LogLine, _facts: ProcessFacts) -> None:
    if not isinstance(draft.status, int):
        return
    known = completion(draft.status)
    draft.severity, draft.cause = known.severity, known.cause
    if known.name:
        draft.fields["status_name"] = known.name
    tail = line.text[: 4 * 1024]
    for name, pattern in _TAIL.items():
        if match := pattern.search(tail):
            found = next(each for each in match.groups() if each is not None)
            draft.fields[name] = found if name.endswith("gid") else as_value(found)
    if match := _HCA.search(tail):
        draft.device = match[1]


def _event(draft: Draft, _line: LogLine, _facts: ProcessFacts) -> None:
    text = draft.status.strip() if isinstance(draft.status, str) else ""
    known = async_event(text, draft.number("code"))
    if known is None:
        draft.status = text or draft.number("code")
        return
    draft.status = text or known.text
    draft.severity, draft.cause = known.severity, known.cause


def _fatal_event(draft: Draft, line: LogLine, facts: ProcessFacts) -> None:
    _event(draft, line, facts)
    draft.severity = _CRITICAL


def _unknown_event(draft: Draft, line: LogLine, facts: ProcessFacts) -> None:
    _event(draft, line, facts)
    draft.severity = _WARNING


def _ratio(one: str, other: str) -> Adjust:
    def adjust(draft: Draft, _line: LogLine, _facts: ProcessFacts) -> None:
        first, second = draft.text(one), draft.text(other)
        if first is not None and second is not None:
            draft.status = f"{first}/{second}"

    return adjust


def _says(status: str) -> Adjust:
    def adjust(draft: Draft, _line: LogLine, _facts: ProcessFacts) -> None:
        draft.status = status

    return adjust


def _caused(causes: Mapping[int, str]) -> Adjust:
    def adjust(draft: Draft, _line: LogLine, _facts: ProcessFacts) -> None:
        if isinstance(draft.status, int):
            draft.cause = causes.get(abs(draft.status))

    return adjust


def _modify_qp(draft: Draft, line: LogLine, facts: ProcessFacts) -> None:
    _caused(CONNECT_CAUSES)(draft, line, facts)
    if draft.number("attempt") is not None:
        draft.severity = _WARNING  # it is tried again


def _verbs(draft: Draft, _line: LogLine, _facts: ProcessFacts) -> None:
    if draft.status == "ibv_get_async_event":
        draft.severity = _ERROR  # follows a fatal event: nobody listens any more
    if draft.number("errno") == ENOMEM:
        draft.cause = "memory_limit"


def _no_device(draft: Draft, _line: LogLine, facts: ProcessFacts) -> None:
    """Judge that no device was found: bad where the process has something for RDMA."""
    if draft.number("devices"):
        return
    draft.kind = "ib_no_device"
    draft.severity = _CRITICAL if facts.rdma_wanted else _INFO


def _failed_device(draft: Draft, _line: LogLine, _facts: ProcessFacts) -> None:
    if (recovery := draft.text("recovery")) is not None:
        draft.status = f"recovery={recovery}"


def _network(draft: Draft, _line: LogLine, facts: ProcessFacts) -> None:
    """Judge the network's name: TCP where RDMA was tried is a silent slowdown."""
    if draft.status != "Socket":
        return
    draft.kind, draft.device = "net_fallback_socket", facts.interface
    draft.severity = _CRITICAL if facts.rdma_missed else _WARNING
    draft.cause = "silent_slowdown" if facts.rdma_missed else None


def _channel(draft: Draft, _line: LogLine, facts: ProcessFacts) -> None:
    index = draft.device or ""
    draft.fields["nic"] = index
    direct = draft.fields.pop("gdr", None) is not None
    draft.fields["gdr"] = int(direct)
    for name in ("shared", "gdr_over_pci"):
        draft.fields[name] = int(draft.fields.pop(name, None) is not None)
    if draft.status == "Socket":
        draft.kind, draft.device = "channel_via_socket", None
        # The process has said before that it uses sockets: nothing new.
        draft.severity = _INFO if facts.on_sockets else _WARNING
        draft.root = not facts.on_sockets
        return
    nic = facts.nic(index)
    if nic is not None:
        draft.device, draft.port = nic.device, nic.port
        if nic.direct and not direct:
            draft.severity, draft.cause = _WARNING, "gdr_not_used"


def _direct(draft: Draft, _line: LogLine, facts: ProcessFacts) -> None:
    if draft.device is None and (nic := facts.nic(draft.text("nic") or "")):
        draft.device, draft.port = nic.device, nic.port
    if draft.text("state") == "Disabled":
        draft.kind, draft.severity = "gdr_disabled", _WARNING


def _retry(draft: Draft, _line: LogLine, _facts: ProcessFacts) -> None:
    draft.fields["errno"] = draft.status if draft.status is not None else ""
    draft.status = f"{draft.text('attempt')}/{draft.text('attempts')}"


def _closed(draft: Draft, line: LogLine, _facts: ProcessFacts) -> None:
    """Judge a closed connection: of this very host it was a thread of this process."""
    if draft.peer is not None and draft.peer == line.host:
        draft.severity, draft.cause, draft.root = _INFO, "consequence", False


def _handshake(draft: Draft, line: LogLine, _facts: ProcessFacts) -> None:
    if line.level == "INFO":
        draft.severity = _INFO  # the connection was dropped, nothing else


def _proxy(draft: Draft, _line: LogLine, facts: ProcessFacts) -> None:
    closing = draft.status in {"Close", EAGAIN}
    if closing:
        draft.severity, draft.cause = _INFO, "abort_in_progress"
    elif facts.gpu_failed:
        draft.severity, draft.cause = _INFO, "consequence"
    draft.root = not (closing or facts.gpu_failed)
    _name_result(draft)


def _lost_proxy(status: str) -> Adjust:
    def adjust(draft: Draft, line: LogLine, facts: ProcessFacts) -> None:
        draft.status = status
        _proxy(draft, line, facts)

    return adjust


def _result(draft: Draft, _line: LogLine, _facts: ProcessFacts) -> None:
    _name_result(draft)
    draft.root = False


def _name_result(draft: Draft) -> None:
    result = draft.number("result")
    if result is not None and (name := result_name(result)):
        draft.fields["result_name"] = name


def _cuda(draft: Draft, _line: LogLine, _facts: ProcessFacts) -> None:
    draft.status = draft.text("text") if draft.status is None else draft.status


def _sharp_log(draft: Draft, line: LogLine, _facts: ProcessFacts) -> None:
    if "port is used by SM" in line.text:
        draft.cause = "sharp_port_is_sm"


def _ofi_request(draft: Draft, line: LogLine, _facts: ProcessFacts) -> None:
    """Take the codes; libfabric's own comes first, text behind a number is not C's."""
    details = line.text[: 4 * 1024].partition("completed with error")[2]
    found = _OFI_CODE.search(details)
    provider = _OFI_PROVIDER_CODE.search(details)
    if found:
        draft.fields["libfabric_code"] = int(found[1])
    if code := provider or found:
        draft.status = int(code[1])
        draft.cause = EFA_CAUSES.get(abs(int(code[1])))
    if device := _OFI_DEVICE.search(details):
        draft.device = device[1]


def _libfabric(draft: Draft, _line: LogLine, _facts: ProcessFacts) -> None:
    text = draft.text("text") or ""
    draft.pid = draft.number("process")
    provider = _LIBFABRIC_CODE.search(text)
    code = provider or _LIBFABRIC_ERR.search(text)
    if code:
        draft.status = int(code[1])
        draft.cause = EFA_CAUSES.get(abs(int(code[1])))
    else:
        draft.status = errno_number(text.rpartition(": ")[2])
        draft.cause = "memory_limit" if draft.status == ENOMEM else None


def _ucx(draft: Draft, _line: LogLine, _facts: ProcessFacts) -> None:
    if match := _UCX_DEVICE.search(draft.text("text") or ""):
        draft.device, draft.port = match[1], decimal(match[2])


def _watchdog(draft: Draft, _line: LogLine, _facts: ProcessFacts) -> None:
    draft.status = f"{draft.text('operation')} seq {draft.text('sequence')}"


def _setting(draft: Draft, _line: LogLine, _facts: ProcessFacts) -> None:
    """Take the value: a whole number is printed with a dot behind it."""
    value = (draft.text("value") or "").strip()
    if value.endswith(".") and value[:-1].removeprefix("-").isdecimal():
        value = value[:-1]
    draft.fields["value"] = value


def _version(draft: Draft, _line: LogLine, _facts: ProcessFacts) -> None:
    draft.library = (draft.text("name") or "nccl").lower()


ADJUST: dict[str, Adjust] = {
    **dict.fromkeys(("C1", "C2"), _completion),
    **dict.fromkeys(("A1", "A3"), _event),
    "A2": _fatal_event,
    "A5": _unknown_event,
    "A6": _ratio("old_mbps", "new_mbps"),
    "V1": _modify_qp,
    **dict.fromkeys(("V2", "V3"), _verbs),
    **dict.fromkeys(("V5", "V7"), _no_device),
    "R1": _failed_device,
    "R3b": _ratio("failed", "devices"),
    "T3": _network,
    "T6": _channel,
    "T7": _direct,
    "T10": _ratio("least", "most"),
    "T11b": _ratio("devices", "remote_devices"),
    **dict.fromkeys(("S1", "S2", "S2c"), _caused(SOCKET_CAUSES)),
    "S3b": _retry,
    "S4": _caused(STREAM_CAUSES),
    "S5": _closed,
    "S6": _handshake,
    **dict.fromkeys(("S12", "S12b", "S12d"), _ratio("got", "expected")),
    **dict.fromkeys(("X1", "X2", "X2c", "X2d"), _proxy),
    "X2b": _lost_proxy("receive type"),
    "X2e": _lost_proxy("recv polling"),
    **dict.fromkeys(("X4", "X5", "X5b"), _result),
    "X6": _cuda,
    "N1a": _sharp_log,
    "O1": _ofi_request,
    "O3": _ratio("expected", "got"),
    "O4": _libfabric,
    "U2": _ucx,
    "W1": _watchdog,
    **dict.fromkeys(("Q3", "Q3b", "Q3c"), _ratio("state", "errors")),
    "E1": _setting,
    "E2": _version,
    "I9": _ratio("version", "other_version"),
}
