"""Scrapes of snapshots without a server, as tests of the sink read them."""

from collections.abc import Iterator, Mapping

from fabricmon.catalogue import Directory
from fabricmon.config import Config
from fabricmon.model import PortId, PortSnapshot, Snapshot
from fabricmon.parse.words import LinkLayer
from fabricmon.sinks.exposition import Exposition
from tests.sinks import nodes

PORT = PortId("mlx5_0", 1)

DRIVER_VALUES: dict[str, int] = {
    "rx_prio3_pause": 41_927, "rx_prio3_pause_duration": 8_134,
    "tx_prio3_pause": 1_290_418, "tx_prio3_pause_duration": 2_914_772,
    "rx_corrected_bits_phy": 17_750_739, "outbound_pci_stalled_wr": 37,
}  # fmt: skip


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1.0

    def __call__(self) -> float:
        """Return the time that was set."""
        return self.now


def exposition(snapshot: Snapshot, config: Config | None = None) -> Exposition:
    """Return an exposition that has this snapshot."""
    made = Exposition(config or Config(), clock=Clock())
    made.publish(snapshot)
    return made


def lines(text: bytes) -> Iterator[tuple[str, str]]:
    """Yield the samples of an exposition as they are written: series, value."""
    for line in text.decode().split("\n"):
        if line and not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            yield series, value


def scrape(made: Exposition) -> dict[str, str]:
    """Return each series as it is written, with its value."""
    found = list(lines(made.render().body))
    assert len(found) == len(dict(found)), "a series appears twice"
    return dict(found)


def value(snapshot: Snapshot, series: str, config: Config | None = None) -> str | None:
    """Return the value of one series without the prefix of its name."""
    return scrape(exposition(snapshot, config)).get(f"fabricmon_{series}")


def with_counters(
    values: Mapping[str, int | None],
    directory: Directory = Directory.COUNTERS,
    layer: LinkLayer | None = LinkLayer.INFINIBAND,
) -> PortSnapshot:
    """Return a port with these counters of mlx5 and no others."""
    specs = [nodes.find(directory, file, "mlx5_core") for file in values]
    return nodes.port(layer=layer, readings=(nodes.reading(PORT, specs, values),))
