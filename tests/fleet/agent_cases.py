"""Cases of the alerts about agents."""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet.options import Agents, FleetOptions
from tests.fleet.kind_cases import FOUND, finding, identities
from tests.fleet.promtool import Case, Told, series

_MINUTE = 60
_BOARD = "/d/fabricmon-agents?var-cluster=c1"
_NODE = f"{_BOARD}&var-node=n1"
_AGENT = series("fabricmon_build_info", version="1", python="3.11")


def cases() -> Iterator[Case]:
    """Yield one for each alert, and more where one has several causes."""
    yield _absent()
    yield _many_absent()
    yield _snapshot()
    yield _unsaved()
    yield _sink()
    yield _lost()
    yield from _clocks()
    yield _budget()


def _labels(alert: str, kind: str, **more: str) -> dict[str, str]:
    return {
        "alertname": alert,
        "cluster": "c1",
        "kind": kind,
        "notice": "ticket",
        "severity": "warning",
        "role": "observer",
        "action": "none",
        "origin": "fleet",
    } | more


def _absent() -> Case:
    told = Told(
        _labels("FabricAgentAbsent", "agent_absent", node="n1", rack="r1"),
        "n1: the agent has not been scraped for 15m or longer",
        "Nothing watches the fabric of this node. It had an agent within the last 1d: "
        "the agent, the node or the way to it is down. What it is not: a finding "
        "about a port; a node that is known to be down is told by the site's own "
        "alert.",
        _NODE,
    )
    shown = {
        _AGENT: "1x30 stale",
        series("fabricmon_node_info", rack="r1"): "1x30 stale",
        series("fabricmon_build_info", node="n2", version="1"): "1x90",
    }
    return Case("FabricAgentAbsent", shown, "44m", "47m", [told], "", _MINUTE)


def _many_absent() -> Case:
    told = Told(
        _labels("FabricAgentsAbsent", "agent_absent", severity="critical"),
        "30% of the agents that were seen today are absent",
        "So many at once have one cause: a rollout, the scrape configuration, a "
        "network policy, a rack or a leaf without power. What it is not: so many "
        "single faults; alerts for single nodes are inhibited meanwhile.",
        _BOARD,
    )
    shown = {
        series("fabricmon_build_info", node=f"n{number}", version="1"): (
            "1x30 stale" if number < 3 else "1x90"
        )
        for number in range(10)
    }
    return Case("FabricAgentsAbsent", shown, "44m", "47m", [told], "", _MINUTE)


def _snapshot() -> Case:
    told = Told(
        _labels("FabricSnapshotOld", "snapshot_old", node="n1"),
        "n1: the agent answers with values that are 5m 0s old",
        "The agent's loop stands still while its listener answers: all values and "
        "findings of this node are from that time. What it is not: a source that is "
        "late (telemetry_stale): nothing is judged at all.",
        _NODE,
    )
    shown = {_AGENT: "1x80", series("fabricmon_snapshot_age_seconds"): "2x20 300x60"}
    return Case("FabricSnapshotOld", shown, "7m", "8m", [told])


def _unsaved() -> Case:
    told = Told(
        _labels("FabricStateNotSaved", "state_unsaved", node="n1"),
        "n1: the agent cannot save its state",
        "After a restart it would not know which ports were ever up, nor its history "
        "of flaps, and would tell open findings again as new. What it is not: a fault "
        "of the fabric; the agent judges as before until it restarts.",
        _NODE,
    )
    shown = {_AGENT: "1x120", series("fabricmon_state_saved"): "1x20 0x100"}
    return Case("FabricStateNotSaved", shown, "20m", "21m", [told])


def _sink() -> Case:
    told = Told(
        _labels("FabricSinkDown", "sink_down", sink="mqtt"),
        "2 agents do not reach the server of mqtt",
        "Findings wait on the nodes, the oldest are dropped when there are too many "
        "(fabricmon_sink_dropped_findings_total). One node: its network or "
        "certificate; all: the broker. What it is not: a fault of the fabric; metrics "
        "and alerts do not go this way.",
        _BOARD,
    )
    shown = {
        series("fabricmon_sink_connected", node="n1", sink="mqtt"): "1x20 0x100",
        series("fabricmon_sink_connected", node="n2", sink="mqtt"): "1x20 0x100",
        series("fabricmon_sink_connected", node="n3", sink="mqtt"): "1x120",
    }
    return Case("FabricSinkDown", shown, "20m", "21m", [told])


def _lost() -> Case:
    told = Told(
        _labels("FabricDetectorLost", "detector_lost", lost="link_errors"),
        "link_errors cannot be judged any more on 2 nodes",
        "A day ago it could. An upgrade of fabricmon, the driver or the kernel, or a "
        "changed permission, took away what it reads; fabricmon_detector_blind names "
        "the reason on each node. What it is not: health: no finding of this kind can "
        "come from those nodes.",
        _BOARD,
    )
    blind = {"kind": "link_errors", "reason": "no driver here counts it"}
    always = {"kind": "module_hot", "reason": "no sensor"}
    shown = {
        series("fabricmon_build_info", node="n1", version="1"): "1x200",
        series("fabricmon_build_info", node="n2", version="1"): "1x200",
        series("fabricmon_build_info", node="new", version="1"): "_x110 1x90",
        series("fabricmon_detector_blind", node="n1", **blind): "_x120 1x80",
        series("fabricmon_detector_blind", node="n2", **blind): "_x120 1x80",
        series("fabricmon_detector_blind", node="n1", **always): "1x200",
        series("fabricmon_detector_blind", node="new", **blind): "_x110 1x90",
    }
    an_hour = FleetOptions(agents=Agents(blind_past_seconds=3600, blind_seconds=600))
    return Case(
        "FabricDetectorLost", shown, "2h5m", "2h15m", [told], "", _MINUTE, an_hour
    )


def _clocks() -> Iterator[Case]:
    told = Told(
        _labels("FabricClocksDisagree", "clock_disagreement"),
        "clocks of 2 nodes are off by more than 1 s, or kept by nobody",
        "What came first over nodes is not judged where they are involved. Among "
        "them: n1 n2. What it is not: a fault of the fabric; single nodes are judged "
        "by a clock that does not jump.",
        _BOARD,
    )
    shown = {
        series("fabricmon_clock_error_seconds", node="n1"): "0.001x20 4x80",
        series("fabricmon_clock_synchronized", node="n1"): "1x100",
        series("fabricmon_clock_synchronized", node="n2"): "1x20 0x80",
        series("fabricmon_clock_error_seconds", node="n3"): "0.002x100",
    }
    yield Case("FabricClocksDisagree", shown, "14m", "16m", [told])


def _budget() -> Case:
    found = FOUND["device_missing"]
    told = Told(
        _labels("FabricAlertBudgetExceeded", "alert_budget", severity="critical"),
        "11 places carry advice at once: take none of it before the common cause is "
        "known",
        "More than single faults explain; the gate suspends all advice meanwhile. "
        "Kinds: device_missing 11. What it is not: a reason to drain so many nodes: "
        "look at leafs, racks, a rollout, the expectations that are configured.",
        "/d/fabricmon-fleet?var-cluster=c1",
    )
    shown: dict[str, str] = {}
    for number in range(11):
        begins = "_x19" if number < 10 else "_x29"
        for name, values in (identities() | finding("device_missing", found)).items():
            moved = name.replace('node="n1"', f'node="n{number}"')
            shown[moved] = values.replace("_x20", begins)
        for device in range(8):
            verdict = series(
                "fabricmon_port_verdict", node=f"n{number}", device=device, port=1
            )
            shown[verdict] = "0x80"
    return Case("FabricAlertBudgetExceeded", shown, "7m", "8m", [told])
