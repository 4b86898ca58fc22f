"""From open incidents and freshness to one word."""

from __future__ import annotations

import pytest

from fabricmon.kinds import BY_SLUG
from fabricmon.model import (
    Finding,
    Incident,
    IncidentState,
    PortId,
    Severity,
    Subject,
    Verdict,
)
from fabricmon.parse.words import PortState
from fabricmon.verdicts import DOWN_KINDS, concerns, of_finding, of_node, of_port
from tests.views import START, port, port_view, status

PORT = PortId("mlx5_0", 1)
HERE = Subject(device="mlx5_0", port=1)


def finding(
    kind: str, severity: Severity = Severity.WARNING, subject: Subject = HERE
) -> Finding:
    """Return a finding about a port."""
    return Finding(kind, subject, 0.0, (), f"{kind} it is", severity)


def incident(
    kind: str,
    severity: Severity = Severity.WARNING,
    subject: Subject = HERE,
    *,
    dry_run: bool = False,
) -> Incident:
    """Return an open incident."""
    return Incident(
        "id",
        1,
        IncidentState.OPEN,
        0.0,
        finding(kind, severity, subject),
        "node-1",
        "",
        dry_run=dry_run,
    )


class TestFinding:
    @pytest.mark.parametrize("kind", sorted(DOWN_KINDS))
    def test_no_traffic_passes(self, kind: str) -> None:
        """These kinds say that the port is dead."""
        assert of_finding(finding(kind)) is Verdict.DOWN

    def test_there_is_such_a_kind(self) -> None:
        """A slug that no table has would never say anything."""
        assert BY_SLUG.keys() >= DOWN_KINDS

    def test_traffic_suffers(self) -> None:
        """Any other kind about the fabric says degraded."""
        assert of_finding(finding("link_errors")) is Verdict.DEGRADED

    def test_information(self) -> None:
        """What is only told speaks against nothing, also of a dead port."""
        assert of_finding(finding("port_down", Severity.INFO)) is Verdict.HEALTHY

    @pytest.mark.parametrize("kind", ["telemetry_stale", "source_failed"])
    def test_the_monitor_itself(self, kind: str) -> None:
        """That it cannot see makes the fabric unknown, not degraded."""
        assert of_finding(finding(kind)) is Verdict.UNKNOWN


class TestConcerns:
    def test_the_same_port(self) -> None:
        """An incident about a port concerns that port and no other."""
        assert concerns(incident("link_errors"), PORT)
        assert not concerns(incident("link_errors"), PortId("mlx5_0", 2))

    def test_its_device(self) -> None:
        """An incident about a device concerns all its ports."""
        whole = incident("device_missing", subject=Subject(device="mlx5_0"))
        assert concerns(whole, PortId("mlx5_0", 2))
        assert not concerns(whole, PortId("mlx5_1", 1))

    def test_the_node(self) -> None:
        """An incident about the node is no port's own."""
        assert not concerns(incident("source_failed", subject=Subject()), PORT)


class TestPort:
    def test_well(self) -> None:
        """ACTIVE, fresh, and nothing speaks against it: no reasons."""
        assert of_port(port_view(), []) == (Verdict.HEALTHY, ())

    def test_the_worst_counts(self) -> None:
        """Its reasons are given, those of milder ones are not."""
        incidents = [incident("link_errors"), incident("port_down")]
        assert of_port(port_view(), incidents) == (Verdict.DOWN, ("port_down it is",))

    def test_all_reasons_of_the_worst(self) -> None:
        """Two that are equally bad are both told."""
        incidents = [incident("link_errors"), incident("port_flap")]
        assert of_port(port_view(), incidents)[1] == (
            "link_errors it is",
            "port_flap it is",
        )

    def test_shadow(self) -> None:
        """A kind in shadow changes no verdict."""
        hidden = incident("port_down", dry_run=True)
        assert of_port(port_view(), [hidden]) == (Verdict.HEALTHY, ())

    @pytest.mark.parametrize(
        "view",
        [
            port_view(status=None),
            port_view(status=status(port(), START, None)),
            port_view(fresh=False),
        ],
        ids=["never read", "unreadable", "old"],
    )
    def test_unknown(self, view: object) -> None:
        """What is not known to be well is unknown, and says why."""
        verdict, reasons = of_port(view, [])  # type: ignore[arg-type]
        assert verdict is Verdict.UNKNOWN
        assert len(reasons) == 1

    @pytest.mark.parametrize("state", [PortState.DOWN, PortState.INIT])
    def test_should_be_up_and_is_not_yet(self, state: PortState) -> None:
        """Until that is a finding the port is no healthy one either."""
        waiting = port_view(status=status(port(), START, state), ever_active=False)
        assert of_port(waiting, [], 5.2) == (Verdict.UNKNOWN, (f"{state} for 5 s",))

    def test_switched_off(self) -> None:
        """A port that somebody took down is unknown, and its finding says why."""
        off = port_view(status=status(port(), START, PortState.DOWN))
        found = [incident("port_down", Severity.INFO), incident("port_flap")]
        info = [incident("port_down", Severity.INFO)]
        assert of_port(off, info, 28) == (Verdict.UNKNOWN, ("port_down it is",))
        assert of_port(off, found, 28) == (Verdict.DEGRADED, ("port_flap it is",))

    def test_known_bad_although_old(self) -> None:
        """A finding outweighs that nothing new is known."""
        old = port_view(fresh=False)
        assert of_port(old, [incident("port_down")])[0] is Verdict.DOWN

    def test_not_in_use(self) -> None:
        """A port that was never up is no fault; it is said all the same."""
        spare = port_view(
            status=status(port(), START, PortState.DOWN), ever_active=False
        )
        assert of_port(spare, []) == (Verdict.HEALTHY, ("DOWN: not in use",))


class TestNode:
    def test_the_worst_port(self) -> None:
        """One port that is down makes the node down."""
        ports = [Verdict.HEALTHY, Verdict.DOWN, Verdict.UNKNOWN]
        assert of_node(ports, [], blind=False) is Verdict.DOWN

    def test_all_well(self) -> None:
        """And nothing else."""
        assert of_node([Verdict.HEALTHY], [], blind=False) is Verdict.HEALTHY

    def test_blind(self) -> None:
        """What cannot be seen is not healthy, but what is seen to be bad stays so."""
        assert of_node([Verdict.HEALTHY], [], blind=True) is Verdict.UNKNOWN
        assert of_node([Verdict.DEGRADED], [], blind=True) is Verdict.DEGRADED

    def test_node_wide(self) -> None:
        """An incident about the node counts although no port has it."""
        slow = incident("config_drift", subject=Subject())
        assert of_node([Verdict.HEALTHY], [slow], blind=False) is Verdict.DEGRADED

    def test_a_device_without_ports(self) -> None:
        """One that is missing has none left that could say so."""
        gone = incident("device_missing", subject=Subject(device="mlx5_9"))
        assert of_node([Verdict.HEALTHY], [gone], blind=False) is Verdict.DOWN

    def test_a_port_speaks_for_itself(self) -> None:
        """Its incidents are in its verdict: they are not judged twice."""
        own = incident("port_down")
        assert of_node([Verdict.HEALTHY], [own], blind=False) is Verdict.HEALTHY
