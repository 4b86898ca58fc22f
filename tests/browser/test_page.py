"""The status page in a real browser, on snapshots that the test publishes."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from fabricmon.config import Config
from fabricmon.model import (
    Action,
    Blindness,
    Evidence,
    MaintenanceWindow,
    PortSnapshot,
    Role,
    Severity,
    Snapshot,
    Verdict,
)
from fabricmon.parse.words import PhysState, PortState, Rate
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.sinks import page_document
from fabricmon.sinks.page import PageSink
from tests.browser import looking
from tests.browser.looking import ask, count, text, until
from tests.sinks import nodes, pages
from tests.sinks.test_page_hostile import ATTACKS, node_of
from tests.support.browser import console_errors

pytestmark = pytest.mark.browser

AA = 4.5
"""Contrast that WCAG 2 asks of text, level AA."""

WIDTHS = (320, 380, 480, 690, 760, 900, 1024, 1140, 1217, 1280, 1920)
EVIDENCE = (
    Evidence(
        "symbol_error", 204, "errors", "infiniband/mlx5_5/ports/1/counters", 52, 60
    ),
    Evidence("state", "DOWN", "", "infiniband/mlx5_5/ports/1", "ACTIVE"),
)


@pytest.fixture
def sink() -> Iterator[PageSink]:
    """Serve a page of a healthy node."""
    started = PageSink(Config(), "127.0.0.1:0", Heartbeat())
    started.publish(nodes.node(nodes.port()), ())
    started.open()
    yield started
    started.close()


@pytest.fixture
def page(sink: PageSink, browser: Chrome) -> Iterator[Chrome]:
    """Return the browser on that page."""
    looking.use(browser, looking.DESK)
    browser.get(f"http://127.0.0.1:{sink.listener.port}/")
    yield browser
    browser.get("about:blank")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def full_ports(number: int) -> list[PortSnapshot]:
    """Return ports with traffic, three quarters of them rails."""
    made = []
    for index in range(number):
        port = nodes.port(f"mlx5_{index}")
        is_rail = index < number * 3 // 4
        info = replace(
            port.info,
            rail=index if is_rail else None,
            role=Role.COMPUTE if is_rail else Role.STORAGE,
        )
        line = tuple(2e10 + 2e10 * ((index + step * 7) % 11) / 11 for step in range(60))
        made.append(
            replace(
                port,
                info=info,
                errors_per_hour=0.0,
                traffic_received=line,
                traffic_transmitted=line[::-1],
            )
        )
    return made


def troubled(number: int = 8) -> Snapshot:
    """Return a node on which everything is to be seen that a page can show."""
    ports = full_ports(number)
    at = nodes.NOW
    status = ports[1].status
    assert status is not None
    ports[1] = replace(
        ports[1],
        verdict=Verdict.DOWN,
        status=replace(status, state=PortState.DOWN, phys_state=PhysState.POLLING),
        flaps=3,
        last_down=nodes.WALL - 60,
    )
    ports[2] = replace(
        ports[2],
        verdict=Verdict.DEGRADED,
        status=replace(status, rate=Rate(200.0, 2, "NDR")),
        errors_per_hour=1110.0,
        saturated=("symbol_error", "port_rcv_errors"),
    )
    ports[3] = replace(
        ports[3],
        verdict=Verdict.UNKNOWN,
        reasons=("values are old: a read hangs or is late",),
        status=replace(status, at=at - 200),
    )
    down = pages.incident(device="mlx5_1", action=Action.DRAIN_NOW, evidence=EVIDENCE)
    return nodes.node(
        *ports,
        verdict=Verdict.DOWN,
        incidents=(
            pages.incident("link_errors", Severity.WARNING, "mlx5_2", Action.INSPECT),
            pages.incident("counter_saturated", Severity.INFO, "mlx5_2"),
            pages.incident("link_unstable", device="mlx5_4", dry_run=True),
            down,
        ),
        health=(
            nodes.health("state", "mlx5_3", in_flight_since=at - 180),
            nodes.failing("errors", "mlx5_3", ("EIO", 12)),
            nodes.health("devices"),
        ),
        maintenance=(MaintenanceWindow(nodes.WALL + 600, ("mlx5_4/1",), "new cable"),),
        maintenance_error="entry 2: no time",
        blind=(Blindness("link_unstable", "no counter of recoveries"),),
        note="roles are unknown: fewer than two equal ports",
    )


def unfold(page: Chrome) -> None:
    """Open everything that is folded away."""
    ask(page, "document.querySelectorAll('details').forEach((d) => { d.open = true })")


class TestRefresh:
    def test_page_works_as_it_is_served(self, page: Chrome) -> None:
        """The policy lets style and script through; the console stays empty."""
        assert page.title == "healthy - n1"
        style = "return getComputedStyle(document.querySelector('.verdict')).color"
        assert ask(page, style) == "rgb(255, 255, 255)"
        assert console_errors(page) == []

    def test_finding_appears_and_goes(self, sink: PageSink, page: Chrome) -> None:
        """Without a reload the page follows the node, the tab's title and icon too."""
        icon = "return document.getElementById('icon').href"
        healthy = ask(page, icon)
        sink.publish(troubled(), ())
        until(lambda: count(page, ".card.critical") > 0, "the finding shows")
        assert page.title == "down - n1"
        assert text(page, "#verdict").startswith("DOWN")
        assert ask(page, icon) != healthy
        sink.publish(nodes.node(nodes.port()), ())
        until(lambda: count(page, ".card") == 0, "the finding is gone")
        assert page.title == "healthy - n1"
        assert ask(page, icon) == healthy
        assert looking.requests(page) == {f"http://127.0.0.1:{sink.listener.port}"}
        assert console_errors(page) == []

    def test_reader_is_not_disturbed(self, sink: PageSink, page: Chrome) -> None:
        """What is open stays open, what has the focus keeps it, marked text too."""
        ask(
            page,
            """
            const details = document.querySelector("#ports details");
            details.open = true;
            details.querySelector("summary").focus();
            getSelection().selectAllChildren(details.querySelector("dd"));
            window.kept = details;
            """,
        )
        sink.publish(nodes.node(replace(nodes.port(), flaps=7)), ())
        until(lambda: "7" in text(page, "td.flaps"), "the page is refreshed")
        assert ask(page, "return kept.isConnected && kept.open")
        focus = "return document.activeElement === kept.querySelector('summary')"
        assert ask(page, focus)
        assert ask(page, "return getSelection().toString()") == "0x0011223344556677"

    def test_agent_that_does_not_answer(self, sink: PageSink, page: Chrome) -> None:
        """An old page says that it is old, and recovers by itself."""
        assert not text(page, "#late")
        port = sink.listener.port
        sink.close()
        until(lambda: "has not answered since" in text(page, "#late"), "it is said")
        assert page.title == "no answer - n1"
        filters = "return getComputedStyle(document.querySelector('main')).filter"
        assert ask(page, filters) == "grayscale(1)"
        looking.photograph(page, looking.DESK, "page-late")
        again = PageSink(Config(), f"127.0.0.1:{port}", Heartbeat())
        with closing(again):
            again.open()
            again.publish(nodes.node(nodes.port()), ())
            until(lambda: page.title == "healthy - n1", "it recovers")
            assert not text(page, "#late")

    def test_agent_that_was_updated(
        self, sink: PageSink, page: Chrome, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A page of another version is loaded again, with its new style."""
        ask(page, "window.isOld = true")
        monkeypatch.setattr(page_document, "_revision", lambda: "another")
        until(lambda: not ask(page, "return window.isOld"), "it is loaded again")
        assert page.title == "healthy - n1"


class TestLooks:
    def test_schemes_differ(self, page: Chrome) -> None:
        """Who works in the dark gets a dark page."""
        grounds = []
        for screen in (looking.DESK, looking.DESK_DARK):
            looking.use(page, screen)
            script = "return getComputedStyle(document.body).backgroundColor"
            grounds.append(sum(map(int, ask(page, script)[4:-1].split(","))))
        assert grounds[0] > 600
        assert grounds[1] < 150

    @pytest.mark.parametrize("screen", looking.SCREENS, ids=lambda screen: screen.name)
    def test_everything_can_be_read(
        self, sink: PageSink, page: Chrome, screen: looking.Screen
    ) -> None:
        """Every text has the contrast that WCAG asks for, in both schemes."""
        looking.use(page, screen)
        sink.publish(troubled(20), ())
        page.refresh()
        unfold(page)
        found = looking.contrasts(page)
        assert len(found) > 200
        assert [each for each in found if each[1] < AA] == []
        looking.photograph(page, screen, "page-troubled")

    def test_nothing_is_wider_than_the_screen(
        self, sink: PageSink, page: Chrome
    ) -> None:
        """No width of a screen needs scrolling to the side, also with all unfolded."""
        sink.publish(troubled(64), ())
        page.refresh()
        wide = []
        for is_unfolded in (False, True):
            if is_unfolded:
                unfold(page)
            for width in WIDTHS:
                looking.use(page, looking.Screen("any", width))
                if looking.overflow(page) > 0:
                    wide.append((width, is_unfolded))
        assert wide == []

    def test_node_without_devices(self, sink: PageSink, page: Chrome) -> None:
        """A node on which there is nothing to see says why."""
        sink.publish(nodes.node(verdict=Verdict.UNKNOWN, class_error="ENOENT"), ())
        page.refresh()
        assert "No RDMA driver is loaded" in text(page, "main .notice")
        looking.photograph(page, looking.PHONE, "page-no-driver")


class TestAccess:
    def test_table_stays_a_table_on_phones(self, sink: PageSink, page: Chrome) -> None:
        """Screen readers find rows and cells whatever the layout is."""
        sink.publish(troubled(), ())
        looking.use(page, looking.PHONE)
        page.refresh()
        tree = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        roles = [node["role"]["value"] for node in tree if not node["ignored"]]
        assert roles.count("table") == 1
        assert roles.count("row") == 1 + 8
        assert roles.count("cell") == 8 * 7
        assert roles.count("columnheader") == 7

    def test_keyboard_opens_a_port(self, page: Chrome) -> None:
        """All that a mouse opens opens with Tab and Enter."""
        body = page.find_element("tag name", "body")
        body.send_keys(Keys.TAB)
        page.switch_to.active_element.send_keys(Keys.ENTER)
        assert ask(page, "return document.querySelector('#ports details').open")

    def test_page_without_scripts(self, sink: PageSink, page: Chrome) -> None:
        """A browser that runs no scripts shows the node, and reloads by itself."""
        page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            page.refresh()
            assert "n1" in page.find_element("tag name", "h1").text
            assert page.find_elements("css selector", "noscript meta[http-equiv]")
        finally:
            page.execute_cdp_cmd(
                "Emulation.setScriptExecutionDisabled", {"value": False}
            )


class TestHostile:
    def test_nothing_runs(self, sink: PageSink, page: Chrome) -> None:
        """Hostile names neither run, nor load, nor break out of the page's frame."""
        sink.publish(node_of("mlx5_0"), ())
        page.refresh()
        elements = count(page, "*:not(wbr)")  # our own, behind underscores of names
        for attack in ATTACKS:
            sink.publish(node_of(attack), ())
            page.refresh()
            assert count(page, "*:not(wbr)") == elements, attack
            for screen in (looking.DESK, looking.PHONE):
                looking.use(page, screen)
                assert looking.overflow(page) <= 0, attack
        assert looking.requests(page) == {f"http://127.0.0.1:{sink.listener.port}"}
        assert console_errors(page) == []

    def test_nothing_runs_in_what_the_script_fetches(
        self, sink: PageSink, page: Chrome
    ) -> None:
        """The way by the script is as safe as that by the document."""
        ask(page, "window.alert = () => { window.isHacked = true }")
        attack = "".join(ATTACKS[:4])
        sink.publish(node_of(attack), ())
        until(lambda: count(page, ".card") == 1, "the refresh shows it")
        assert text(page, ".card h3") == attack
        assert page.title == f"healthy - {attack}"
        assert not ask(page, "return window.isHacked")
        assert count(page, "main img, main script") == 0
        assert console_errors(page) == []
