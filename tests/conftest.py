"""What every test gets: a clean process state, servers, and loud skips."""

import os
import socket
import sys
from collections.abc import Callable, Generator, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog
from blockbuster import BlockBuster
from selenium.webdriver import Chrome

import fabricmon

_ROOT = Path(__file__).parent.parent
# Behind the installed packages: `tests` is found here, `fabricmon` is not.
sys.path.append(str(_ROOT))

from tests.support import browser as _browser  # noqa: E402
from tests.support import programs, servers  # noqa: E402
from tests.support.ahead import ahead  # noqa: E402
from tests.support.order import dealt  # noqa: E402

# A suite that gates a change gives the same answer twice. To search instead:
# pytest --hypothesis-profile=explore
hypothesis.settings.register_profile(
    "gate",
    deadline=None,
    derandomize=True,
    # How fast examples are made tells of the machine, not of what is tested.
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("gate")

StartServer = Callable[..., servers.Server]


def pytest_configure() -> None:
    """Prepare the environment that tests and the programs they start inherit."""
    if "TESTS_NEED_WHEEL" in os.environ:
        assert not Path(fabricmon.__file__).is_relative_to(_ROOT / "fabricmon")
    os.environ["PYTHONSAFEPATH"] = "1"  # or `python -m` finds the working tree
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost,::1"


@pytest.hookimpl(trylast=True)  # after the shuffle
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Let slow tests come first, and those that ask about machines last."""
    items[:] = dealt(items, getattr(config, "workerinput", {}).get("workercount", 1))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Boot machines and build packages while the tests run."""
    with ahead(session):
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly which parts of the machine were missing, and what that cost."""
    skipped: dict[str, int] = {}
    for report in terminalreporter.getreports("skipped"):
        if isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            if reason.startswith(programs.MISSING):
                skipped[reason] = skipped.get(reason, 0) + 1
    if skipped:
        terminalreporter.section("NOT TESTED: THIS MACHINE IS INCOMPLETE", red=True)
        for reason, count in sorted(skipped.items()):
            terminalreporter.write_line(f"{reason}: {count} tests skipped", red=True)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide what the surrounding system would tell a daemon or an NCCL job."""
    for name in list(os.environ):
        if name.startswith(("FABRICMON_", "NCCL_", "NOTIFY_", "WATCHDOG_")):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def default_logging() -> Iterator[None]:
    """Undo what a test configured in structlog, which is global."""
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test that connects to anything but this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in {socket.AF_INET, socket.AF_INET6}:
            host = "127.0.0.1" if address[0] == "localhost" else address[0]
            assert ip_address(host).is_loopback, f"a test connects to {address}"
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def unblocked_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail an asyncio test in which fabricmon blocks the event loop."""
    if request.node.get_closest_marker("asyncio") is None:
        yield
        return
    detector = BlockBuster(fabricmon)
    detector.activate()
    yield
    detector.deactivate()


@pytest.fixture
def free_port() -> int:
    """Return a TCP port on which nothing listens."""
    return servers.free_port()


@pytest.fixture
def start_mosquitto(tmp_path: Path) -> Iterator[StartServer]:
    """Start MQTT brokers: `start_mosquitto(extra="", port=None)`."""
    yield from _starter(servers.mosquitto, tmp_path)


@pytest.fixture
def start_prometheus(tmp_path: Path) -> Iterator[StartServer]:
    """Start Prometheus servers: `start_prometheus(config="")`."""
    yield from _starter(servers.prometheus, tmp_path)


@pytest.fixture
def start_alertmanager(tmp_path: Path) -> Iterator[StartServer]:
    """Start Alertmanagers: `start_alertmanager(config="")`."""
    yield from _starter(servers.alertmanager, tmp_path)


@pytest.fixture
def mosquitto(start_mosquitto: StartServer) -> servers.Server:
    """Return a running MQTT broker."""
    return start_mosquitto()


def _starter(
    prepare: Callable[..., servers.Server], folder: Path
) -> Iterator[StartServer]:
    """Yield a function that starts servers; end these, and no others."""
    started: list[servers.Server] = []

    def start(*args: Any, **options: Any) -> servers.Server:
        started.append(prepare(folder, *args, **options))
        return started[-1].start()

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Start one browser for all tests of this process."""
    driver = _browser.chromium(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium: Chrome) -> Chrome:
    """Return the browser, on an empty page and with an empty console."""
    chromium.get("about:blank")
    _browser.console_errors(chromium)
    return chromium
