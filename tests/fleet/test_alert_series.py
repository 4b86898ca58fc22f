"""The series of alerts that a replay leaves for dashboards."""

from fabricmon.fleet.alert_life import Life
from fabricmon.fleet.alert_series import alert_series
from fabricmon.fleet.firing import Firing
from fabricmon.fleet.rule import Alert, Label, Notice

ALERT = Alert("FabricX", "port_down", "x", Notice.PAGE, "s", "d", "n")


def _fired(fired: float, ended: float | None, node: str = "n1") -> Firing:
    labels = (Label("alertname", "FabricX"), Label("node", node))
    return Firing(ALERT, labels, Life(fired, fired, ended, 1))


def test_it_is_there_while_an_alert_fires() -> None:
    """From its first firing evaluation until the last before its end."""
    found = list(alert_series([_fired(30, 60)], range(0, 100, 15)))

    series = b'ALERTS{alertname="FabricX",alertstate="firing",node="n1"} 1 '
    assert found == [series + b"30.000\n", series + b"45.000\n"]


def test_one_that_does_not_end_is_there_to_the_last() -> None:
    """A replay ends before its faults do."""
    found = list(alert_series([_fired(60, None)], range(0, 100, 15)))

    assert [line.split()[-1] for line in found] == [b"60.000", b"75.000", b"90.000"]


def test_a_name_with_quotes_stays_one_value() -> None:
    """Names of nodes come from outside."""
    found = list(alert_series([_fired(0, 15, 'a"b\\')], range(0, 30, 15)))

    assert b'node="a\\"b\\\\"' in found[0]
