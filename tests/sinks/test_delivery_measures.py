"""What is exported of sinks that send: nothing while none is on."""

from dataclasses import replace

from fabricmon.config import Config, LabelRedaction, Metrics
from fabricmon.model import Delivery, JobUse, JobView
from fabricmon.sinks.exposition import Exposition
from tests.sinks import nodes
from tests.sinks.scraping import exposition, scrape

FARES = Delivery("mqtt", True, 2, 30, 4, 5, 6, nodes.NOW - 7)


def test_off() -> None:
    """A node that sends nothing has no series about it."""
    assert not any("sink_" in series for series in scrape(exposition(nodes.node())))


def test_numbers() -> None:
    """Each number has its family, by the sink's name."""
    found = scrape(exposition(nodes.node(nodes.port(), deliveries=(FARES,))))
    wanted = {
        "connected": "1",
        "connects_total": "2",
        "delivered_total": "30",
        "waiting_findings": "4",
        "dropped_findings_total": "5",
        "failures_total": "6",
        "success_age_seconds": "7",
    }
    shown = {name: found[f'fabricmon_sink_{name}{{sink="mqtt"}}'] for name in wanted}
    assert {name: f"{float(value):g}" for name, value in shown.items()} == wanted


def test_never() -> None:
    """A server that never took anything has no age: it is not zero."""
    never = replace(FARES, last_success=None, connected=False)
    found = scrape(exposition(nodes.node(nodes.port(), deliveries=(never,))))
    assert not any("sink_success_age" in series for series in found)
    assert found['fabricmon_sink_connected{sink="mqtt"}'] == "0"


def test_hidden_names_of_jobs() -> None:
    """What labels may not tell is in no line of the exposition."""
    policy = LabelRedaction(jobs="pseudonym", key_file=__file__)
    config = Config(metrics=Metrics(redact=policy))
    shown = Exposition(config)
    view = JobView(jobs=(JobUse("secret-job", "slurm"),))
    shown.publish(nodes.node(nodes.port(), job=view))
    text = shown.render().body.decode()
    assert "secret" not in text
    assert 'fabricmon_job_info{job="job-' in text
