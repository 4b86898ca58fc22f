"""What ``ibstat`` says of the ports, as a second opinion beside sysfs."""

from __future__ import annotations

from fabricmon.config import Config
from fabricmon.host.protocol import CommandOutput, Host, ReadError
from fabricmon.model import LinkStatus, PortId, ReadFailure, Record, Target, ToolReport
from fabricmon.parse.ibstat import TOOL, ibstat_report
from fabricmon.parse.report import PortReport
from fabricmon.parse.text import decode

MISSING = frozenset({"ENOENT", "ENOTDIR"})


def poll(host: Host, _target: Target, config: Config) -> tuple[Record, ...]:
    """Run ``ibstat`` once; a node without the tool has nothing to compare with.

    It opens every device, so it is not run where some must not be opened.
    """
    if config.devices.exclude or "*" not in config.devices.include:
        return ()
    output = host.command(TOOL, config.deadlines.command_seconds)
    at = host.monotonic()
    if isinstance(output, ReadError):
        if output.errno in MISSING:
            return ()
        message = f"cannot run {TOOL}: allow it or remove it from the path"
        return (ReadFailure(None, None, TOOL, output.errno, message),)
    return (_report(output, at, config.deadlines.command_seconds),)


def _report(output: CommandOutput, at: float, seconds: float) -> ToolReport:
    report = ibstat_report(
        decode(output.stdout), decode(output.stderr), output.exit_status
    )
    errors = [
        ReadFailure(each.device, each.port, TOOL, each.errno, each.message)
        for each in report.errors
    ]
    if output.exit_status is None:
        message = f"{TOOL} did not end within {seconds:g} s and was stopped"
        errors.append(ReadFailure(None, None, TOOL, "ETIMEDOUT", message))
    statuses = tuple(_status(port, at) for port in report.ports)
    return ToolReport(TOOL, at, statuses, tuple(errors))


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
