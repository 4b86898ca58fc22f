"""The tools whose text fabricmon reads: one row each."""

from __future__ import annotations

from typing import Protocol

from fabricmon.parse.ethtool import ethtool_report
from fabricmon.parse.ibcheckerrors import ibcheckerrors_report
from fabricmon.parse.iblinkinfo import iblinkinfo_report
from fabricmon.parse.ibnetdiscover import ibnetdiscover_report
from fabricmon.parse.ibqueryerrors import ibqueryerrors_report
from fabricmon.parse.ibstat import ibstat_report
from fabricmon.parse.ibstatus import ibstatus_report
from fabricmon.parse.ibv_devinfo import ibv_devinfo_report
from fabricmon.parse.mlxlink import mlxlink_report
from fabricmon.parse.perfquery import perfquery_report
from fabricmon.parse.rdma_link import rdma_link_report
from fabricmon.parse.rdma_statistic import rdma_statistic_report
from fabricmon.parse.report import Report
from fabricmon.value import Value


class ToolParser(Protocol):
    """Reads both streams of a tool; None where the exit status is not known."""

    def __call__(
        self, stdout: str, stderr: str = "", exit_status: int | None = None
    ) -> Report:
        """Return what the text says; never raises, whatever the text is."""


class Tool(Value, frozen=True):
    """One kind of text: its name on the command line, the command, its parser."""

    kind: str
    command: str
    parse: ToolParser


TOOLS = (
    Tool("ethtool", "ethtool -S NETDEV", ethtool_report),
    Tool("ibcheckerrors", "ibcheckerrors", ibcheckerrors_report),
    Tool("iblinkinfo", "iblinkinfo [-l]", iblinkinfo_report),
    Tool("ibnetdiscover", "ibnetdiscover --ports", ibnetdiscover_report),
    Tool("ibqueryerrors", "ibqueryerrors", ibqueryerrors_report),
    Tool("ibstat", "ibstat", ibstat_report),
    Tool("ibstatus", "ibstatus", ibstatus_report),
    Tool("ibv_devinfo", "ibv_devinfo [-v]", ibv_devinfo_report),
    Tool("mlxlink", "mlxlink -d DEVICE [-m] [-c] [--json]", mlxlink_report),
    Tool("perfquery", "perfquery [-x]", perfquery_report),
    Tool("rdma_link", "rdma link", rdma_link_report),
    Tool("rdma_statistic", "rdma statistic show link", rdma_statistic_report),
)


def tool_named(kind: str) -> Tool | None:
    """Return the row of a kind; a dash in place of the underscore is taken too."""
    name = kind.replace("-", "_")
    return next((tool for tool in TOOLS if tool.kind == name), None)
