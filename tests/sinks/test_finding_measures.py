"""When findings began, and those about a rail."""

from dataclasses import replace

from fabricmon.model import Finding, Incident, IncidentState, Severity, Subject
from tests.sinks import nodes
from tests.sinks.scraping import exposition, scrape

ONSET = "fabricmon_finding_onset_timestamp_seconds"
RAIL = "fabricmon_rail_finding_open"


def incident(
    onset: float = nodes.WALL,
    *,
    kind: str = "rail_slow",
    state: IncidentState = IncidentState.OPEN,
    shadow: bool = False,
    **subject: object,
) -> Incident:
    """Return an incident about a subject."""
    about = Subject(**subject)  # type: ignore[arg-type]
    finding = Finding(kind, about, onset, (), "text", Severity.WARNING)
    name = f"{onset}{subject}{kind}"
    return Incident(name, 1, state, onset, finding, "node", "r.md", dry_run=shadow)


def series(*incidents: Incident) -> dict[str, str]:
    """Return what a node with these findings exports of them."""
    found = scrape(exposition(replace(nodes.node(), incidents=incidents)))
    return {name: value for name, value in found.items() if name.startswith(ONSET)}


def rails(*incidents: Incident) -> dict[str, str]:
    """Return what a node with these findings exports of its rails."""
    found = scrape(exposition(replace(nodes.node(), incidents=incidents)))
    return {name: value for name, value in found.items() if name.startswith(RAIL)}


class TestOnset:
    def test_oldest_of_a_place(self) -> None:
        """Several of one kind and place are one series: when the first began."""
        place = {"device": "mlx5_0", "port": 1, "kind": "link_errors"}
        found = series(
            incident(2000.0, **place),  # type: ignore[arg-type]
            incident(1000.0, **place),  # type: ignore[arg-type]
        )
        labels = 'device="mlx5_0",kind="link_errors",port="1"'
        assert found == {f"{ONSET}{{{labels}}}": "1000.0"}

    def test_whole_node(self) -> None:
        """Labels as in ``fabricmon_finding_open``: no device is empty."""
        (only,) = series(incident(kind="not_network"))
        assert only == f'{ONSET}{{device="",kind="not_network",port=""}}'

    def test_over_or_in_shadow(self) -> None:
        """What is not open is not exported, nor what is never alerted on."""
        over = incident(state=IncidentState.RESOLVED)
        assert series(over, incident(shadow=True)) == {}


class TestRails:
    def test_by_rail_and_job(self) -> None:
        """What the labels of the open findings cannot say."""
        found = rails(incident(rail=3, job="train"), incident(rail="a", job=None))
        what = 'kind="rail_slow",rail="%s",role="culprit",severity="warning"'
        assert found == {
            f'{RAIL}{{job="train",{what % 3}}}': "1",
            f'{RAIL}{{job="",{what % "a"}}}': "1",
        }

    def test_about_ports_is_elsewhere(self) -> None:
        """A port that is slow is known by its device."""
        assert rails(incident(rail=3, device="mlx5_3", port=1)) == {}

    def test_jobs_are_bounded(self) -> None:
        """At most 32 values of the label, the rest is one."""
        found = rails(*(incident(rail=1, job=f"job-{n}") for n in range(40)))
        assert len(found) == 32
        (other,) = (value for name, value in found.items() if 'job="other"' in name)
        assert other == "9"
