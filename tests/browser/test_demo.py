"""The demo in a real browser: what a newcomer sees first."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests import traces
from tests.browser import looking
from tests.browser.looking import count, text, until
from tests.support.browser import console_errors
from tests.support.demo import Demo

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SPEED = "100"
"""The story of the demo in 23 s; a finding of ten minutes shows for six seconds."""

PATIENCE = 60.0
"""What a slow machine misses it sees when the story is told again."""

NAMES = ("<img src=x onerror=alert(1)>", "a\"onmouseover=alert(1) b='", "e\u202evil")


@pytest.fixture
def page(browser: Chrome) -> Iterator[Chrome]:
    """Return the browser with a desk's screen."""
    looking.use(browser, looking.DESK)
    yield browser
    browser.get("about:blank")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """Play the embedded node in a hurry."""
    played = Demo(tmp_path, "--speed", SPEED)
    played.start()
    yield played
    played.stop()


def test_story_is_told(demo: Demo, page: Chrome) -> None:
    """Findings appear and resolve without a reload, and the demo starts again."""
    page.get(demo.url)
    until(lambda: count(page, "#ports tbody tr") == 11, "the ports show")
    for kind in ("port_flap", "link_errors", "rate_degraded"):
        card = partial(count, page, f".card[data-kind={kind}]")
        until(card, f"{kind} opens", PATIENCE)
    assert "200 Gb/s" in text(page, "tr.degraded .rate .bad")
    for screen in looking.SCREENS:
        looking.photograph(page, screen, "demo")
        assert looking.overflow(page) <= 0
    until(
        lambda: page.title == "healthy - demo-gpu-01" and not count(page, ".card"),
        "everything is resolved",
        PATIENCE,
    )
    assert console_errors(page) == []
    assert looking.requests(page) == {demo.url}
    until(lambda: len(demo.lines("agent_ready")) >= 2, "it starts again", PATIENCE)
    until(partial(count, page, ".card"), "the page goes on", PATIENCE)
    assert not text(page, "#late")


def test_hostile_devices_are_shown_as_they_are(page: Chrome, tmp_path: Path) -> None:
    """A trace from anywhere cannot run a script in the browser of who plays it."""
    folder = "/sys/class/infiniband"
    files = {
        f"{folder}/{name}/ports/1/{file}": f"{value}\n"
        for name in NAMES
        for file, value in (
            ("state", "4: ACTIVE"),
            ("phys_state", "5: LinkUp"),
            ("rate", "400 Gb/sec (4X NDR)"),
            ("link_layer", "InfiniBand"),
        )
    }
    header = {**traces.HEADER, "node": "<script>alert(1)</script>"}
    trace = traces.write(tmp_path, [{"t": 0, "set": files}, {"t": 3600}], header)
    assert json.loads(trace.read_text().splitlines()[0])["node"].startswith("<script>")
    hostile = Demo(tmp_path, "--trace", str(trace))
    hostile.start()
    try:
        page.get(hostile.url)
        until(lambda: count(page, "#ports tbody tr") == len(NAMES), "the ports show")
        assert text(page, "h1") == "<script>alert(1)</script>"
        shown = text(page, "#ports")
        assert "<img src=x onerror=alert(1)>/1" in shown
        assert "a\"onmouseover=alert(1) b='/1" in shown
        assert "e\ufffdvil/1" in shown
        assert count(page, "main img, main script") == 0
        assert console_errors(page) == []
    finally:
        hostile.stop()
