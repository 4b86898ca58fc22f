"""What ``ibstat`` says of the ports, as a second opinion beside sysfs."""

from __future__ import annotations

from fabricmon.config import Config
from fabricmon.host.protocol import CommandOutput, Host, ReadError
from fabricmon.model import LinkStatus, PortId, ReadFailure, Record, Target, ToolReport
from fabricmon.parse.ibstat import TOOL, ibstat_report
from fabricmon.parse.report import PortReport
from fabricmon.parse.text import decode

MISSING = frozenset({"ENOENT", "ENOTDIR"})

_HELD = "EBUSY"


def poll(host: Host, _target: Target, config: Config) -> tuple[Record, ...]:
    """Run ``ibstat`` once; a node without tool or driver has nothing to compare with.

    It opens every device, so it is not run where some must not be opened. A run that
    had to be ended, or that fails and shows no port at all, is a failure.
    """
    if config.devices.exclude or "*" not in config.devices.include:
        return ()
    seconds = config.deadlines.command_seconds
    began = host.monotonic()
    output = host.command(TOOL, seconds)
    at = host.monotonic()
    if isinstance(output, ReadError):
        return () if output.errno in MISSING else (_not_run(output.errno),)
    if output.exit_status is None:
        message = f"{TOOL} did not end within {seconds:g} s and was stopped"
        return (ReadFailure(None, None, TOOL, "ETIMEDOUT", message),)
    return _answer(output, began, at)


def _not_run(errno: str) -> ReadFailure:
    message = f"cannot run {TOOL}: allow it or remove it from the path"
    if errno == _HELD:
        message = f"the kernel still holds the last {TOOL}, which was killed"
    return ReadFailure(None, None, TOOL, errno, message)


def _answer(output: CommandOutput, began: float, at: float) -> tuple[Record, ...]:
    report = ibstat_report(
        decode(output.stdout), decode(output.stderr), output.exit_status
    )
    errors = tuple(
        ReadFailure(each.device, each.port, TOOL, each.errno, each.message)
        for each in report.errors
    )
    if output.exit_status and not report.ports:
        driverless = all(error.errno in MISSING for error in errors)
        return () if driverless else errors
    statuses = tuple(_status(port, at) for port in report.ports)
    return (ToolReport(TOOL, began, at, statuses, errors),)


def _status(port: PortReport, at: float) -> LinkStatus:
    return LinkStatus(
        port=PortId(port.device, port.port),
        at=at,
        state=port.state,
        phys_state=port.phys_state,
        rate=port.rate,
        lid=port.lid,
        sm_lid=port.sm_lid,
    )
