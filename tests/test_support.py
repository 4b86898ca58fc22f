import json
import os
import socket
import urllib.request
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.conftest import StartServer
from tests.support import programs, servers
from tests.support.browser import console_errors


class TestRequire:
    def test_missing_program(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A test without its program is skipped and says what to install."""
        monkeypatch.setenv("PATH", "")
        monkeypatch.setattr(programs, "_SYSTEM_FOLDERS", ())

        with pytest.raises(pytest.skip.Exception) as skip:
            programs.require("promtool")

        assert str(skip.value) == "MISSING promtool (apt-get install prometheus)"


class TestOnlyLoopback:
    def test_elsewhere(self) -> None:
        """A test that connects to another machine fails before a packet leaves."""
        with (
            socket.socket() as client,
            pytest.raises(AssertionError, match=r"192\.0\.2\.1"),
        ):
            client.connect(("192.0.2.1", 80))

    def test_loopback(self) -> None:
        """Connections to this machine work."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            socket.create_connection(listener.getsockname()).close()


@pytest.mark.server
class TestServers:
    def test_mosquitto_comes_back(self, mosquitto: servers.Server) -> None:
        """A broker that was killed starts again on its port."""
        mosquitto.kill()
        assert not servers.accepts(mosquitto.port)

        mosquitto.start()

        assert servers.accepts(mosquitto.port)

    def test_ends_what_it_started(self, mosquitto: servers.Server) -> None:
        """Once stopped, the process is gone."""
        pid = mosquitto.pid

        mosquitto.stop()

        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    def test_bad_configuration(self, start_mosquitto: StartServer) -> None:
        """A server that ends while it starts fails the test with what it said."""
        with pytest.raises(AssertionError, match="nonsense"):
            start_mosquitto(extra="nonsense true")

    def test_prometheus(self, start_prometheus: StartServer) -> None:
        """A Prometheus serves its interface."""
        url = f"{start_prometheus().url}/api/v1/query?query=1%2B1"

        with urllib.request.urlopen(url) as reply:
            answer = json.load(reply)

        assert answer["data"]["result"][1] == "2"

    def test_alertmanager(self, start_alertmanager: StartServer) -> None:
        """An Alertmanager serves its interface."""
        url = f"{start_alertmanager().url}/api/v2/alerts"

        with urllib.request.urlopen(url) as reply:
            assert json.load(reply) == []


@pytest.mark.browser
class TestBrowser:
    def test_shows_a_page(self, browser: Chrome, tmp_path: Path) -> None:
        """The browser runs a page's scripts, and its console is heard."""
        page = tmp_path / "page.html"
        page.write_text("<title>x</title><script>document.title='y'; fail()</script>")

        browser.get(page.as_uri())

        assert browser.title == "y"
        assert len(console_errors(browser)) == 1
