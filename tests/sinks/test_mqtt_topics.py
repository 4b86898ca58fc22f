"""Topics: one level for each name, whatever is in it, and read back the same."""

from hypothesis import given
from hypothesis import strategies as st

from fabricmon.sinks import mqtt_topics as topics
from fabricmon.sinks.mqtt_topics import Place

_NAMES = st.text(min_size=1, max_size=40)


def test_format() -> None:
    """The topics are those of the format."""
    root = topics.root("", "c1", "n1")
    assert root == "fabricmon/v1/c1/n1/"
    assert root + topics.port_topic("mlx5_0", 1) == "fabricmon/v1/c1/n1/port/mlx5_0/1"


def test_encoding() -> None:
    """What separates and matches levels is percent-encoded."""
    assert topics.level("a/b+c#d") == "a%2Fb%2Bc%23d"
    assert topics.level("100%") == "100%25"
    assert topics.level("Köln 1") == "Köln 1"


def test_no_cluster() -> None:
    """A cluster without a name has a level all the same."""
    assert topics.root("", "", "n1") == "fabricmon/v1/default/n1/"


def test_filters() -> None:
    """One node, one cluster or everything."""
    assert topics.filter_of("", None, None) == "fabricmon/v1/+/+/#"
    assert topics.filter_of("/x/", "c/1", "n") == "x/fabricmon/v1/c%2F1/n/#"


def test_others() -> None:
    """Topics of anybody else are none of ours."""
    for topic in (
        "",
        "fabricmon/v1/c/n",
        "fabricmon/v1/c/n/x",
        "fabricmon/v2/c/n/status",
    ):
        assert topics.parse(topic) is None
    assert topics.parse("fabricmon/v1/c/n/port/d") is None
    assert topics.parse("fabricmon/v1/c/n/port/d/1/2") is None


@given(cluster=_NAMES, node=_NAMES, device=_NAMES, port=st.integers(0, 999))
def test_read_back(cluster: str, node: str, device: str, port: int) -> None:
    """Any name survives, and nothing in it makes a level or a wildcard."""
    topic = topics.root("p/q", cluster, node) + topics.port_topic(device, port)
    assert topic.count("/") == 8
    assert not set("+#\0") & set(topic)
    assert topics.parse(topic, "p/q") == Place(cluster, node, "port", device, str(port))


def test_bytes_that_are_no_text() -> None:
    """A name that is not UTF-8 is encoded byte by byte."""
    assert topics.level("mlx\udcff") == "mlx%FF"
