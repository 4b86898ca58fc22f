"""The sink of the status page: what it serves, to whom, and what a browser may do."""

import base64
import gzip
import hashlib
import http.client
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from fabricmon.config import Config, Listen
from fabricmon.errors import HostError
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.runtime.logging import make_logger
from fabricmon.sinks.page import PageSink, make
from tests.sinks import nodes

ANYWHERE = "127.0.0.1:0"


class Pulse(Heartbeat):
    """A heartbeat whose age a test sets."""

    age = 0.0

    @property
    def age_seconds(self) -> float:
        """Seconds since the loop last turned."""
        return self.age


@dataclass
class Answer:
    """What a browser gets."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()


Start = Callable[..., PageSink]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start pages on free ports, and stop them."""
    started = []

    def begin(address: str = ANYWHERE, heartbeat: Heartbeat | None = None) -> PageSink:
        sink = PageSink(Config(), address, heartbeat or Pulse())
        sink.open()
        started.append(sink)
        return sink

    yield begin
    for sink in started:
        sink.close()


@pytest.fixture
def page(start: Start) -> PageSink:
    """Return a page that shows a node."""
    sink = start()
    sink.publish(nodes.node(nodes.port()), ())
    return sink


def get(sink: PageSink, path: str = "/", **headers: str) -> Answer:
    """Return the answer to a GET."""
    connection = http.client.HTTPConnection("127.0.0.1", sink.listener.port, timeout=10)
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", path, headers=fields)
    reply = connection.getresponse()
    answer = Answer(reply.status, dict(reply.getheaders()), reply.read())
    connection.close()
    return answer


class TestContent:
    def test_page_shows_the_newest_snapshot(self, page: PageSink) -> None:
        """Whoever asks sees the node as it stands."""
        assert "<title>healthy - n1</title>" in get(page).text
        page.publish(nodes.node(node="n2"), ())
        assert "<title>healthy - n2</title>" in get(page).text

    def test_fragment_is_what_the_page_holds(self, page: PageSink) -> None:
        """What the script fetches is what stands in the page's middle."""
        assert f"<main>{get(page, '/now').text}</main>" in get(page).text

    def test_before_the_first_snapshot(self, start: Start) -> None:
        """A browser that comes too early tries again by itself."""
        answer = get(start())
        assert answer.status == 503
        assert answer.headers["Refresh"] == "1"

    def test_agent_that_hangs(self, start: Start) -> None:
        """The listener outlives the agent's loop, and says that it stands still."""
        pulse = Pulse()
        sink = start(heartbeat=pulse)
        sink.publish(nodes.node(), ())
        pulse.age = Config().listen.healthy_seconds
        assert "has not looked" not in get(sink).text
        pulse.age = 95.0
        assert "has not looked at the node for 95 s" in get(sink, "/now").text

    def test_compressed_for_slow_tunnels(self, page: PageSink) -> None:
        """Who takes gzip gets the same text in a few kilobytes."""
        plain = get(page)
        packed = get(page, Accept_Encoding="gzip, br")
        assert packed.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(packed.body) == plain.body
        assert "Content-Encoding" not in plain.headers


class TestSecurity:
    def test_policy_allows_the_own_style_and_script_alone(self, page: PageSink) -> None:
        """The hashes are those of what the page holds; nothing else may run."""
        answer = get(page)
        policy = answer.headers["Content-Security-Policy"]
        for tag, rule in (("style", "style-src"), ("script", "script-src")):
            (inner,) = re.findall(f"<{tag}>(.*?)</{tag}>", answer.text, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(inner.encode()).digest())
            assert f"{rule} 'sha256-{digest.decode()}'" in policy
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy

    def test_nothing_comes_from_elsewhere(self, page: PageSink) -> None:
        """The page names no other resource than the icon that it holds itself."""
        text = get(page).text
        found = re.findall(r' (?:src|srcset|href|action|data)="([^"]*)"', text)
        assert found
        assert all(each.startswith(("#", "data:image/svg+xml,")) for each in found)
        assert not re.findall(r"url\(|@import|https?:", text)

    @pytest.mark.parametrize(
        ("host", "status"),
        [
            ("127.0.0.1:9880", 200),
            ("localhost:8000", 200),
            ("LOCALHOST", 200),
            ("[::1]:9880", 200),
            ("127.9.9.9", 200),
            ("evil.example:9880", 421),
            ("localhost.evil.example", 421),
            ("127.0.0.1.evil.example", 421),
            ("10.0.0.1", 421),
            ("[2001:db8::1]", 421),
        ],
    )
    def test_rebound_name_gets_nothing(
        self, page: PageSink, host: str, status: int
    ) -> None:
        """A site whose name was pointed at this address cannot read the node."""
        for path in ("/", "/now"):
            answer = get(page, path, Host=host)
            assert answer.status == status
            assert ("n1" in answer.text) == (status == 200)

    def test_public_page_answers_to_every_name(self, start: Start) -> None:
        """Who lets others read the page need not list its names."""
        sink = start("0.0.0.0:0")
        sink.publish(nodes.node(), ())
        assert get(sink, Host="node1.cluster.example").status == 200


class TestLife:
    def test_address_comes_back(self, start: Start) -> None:
        """A page that was closed can be opened on the same port at once."""
        first = start()
        first.publish(nodes.node(), ())
        port = first.listener.port
        assert get(first).status == 200
        first.close()
        second = start(f"127.0.0.1:{port}")
        second.publish(nodes.node(), ())
        assert get(second).status == 200

    def test_address_in_use(self, start: Start) -> None:
        """An address that another program has is an error that names it."""
        port = start().listener.port
        with pytest.raises(HostError, match=f"port {port}"):
            start(f"127.0.0.1:{port}")

    def test_page_can_be_turned_off(self) -> None:
        """Without an address there is no page."""
        config = Config(listen=Listen(page=None))
        assert make(config, Pulse(), make_logger(config.log)) is None

    def test_page_is_made_as_configured(self) -> None:
        """The address is the configuration's."""
        config = Config(listen=Listen(page="127.0.0.1:1234"))
        sink = make(config, Pulse(), make_logger(config.log))
        assert sink is not None
        assert sink.listener.port == 1234
