"""A node whose rails carry traffic, with the counters of its real driver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fabricmon.catalogue import CounterSpec, Directory, family, lookup
from fabricmon.detect.protocol import Detector
from fabricmon.model import Finding, PortInfo
from fabricmon.parse.words import LinkLayer
from tests.node import RAILS, Node

LINE = 400e9 / 8  # octets a second at 400 Gb/s
PACKET = 4096

_H, _C, _E = Directory.HW_COUNTERS, Directory.COUNTERS, Directory.ETHTOOL
MLX5: dict[str, Directory] = {
    **dict.fromkeys(
        (
            "port_rcv_data", "port_xmit_data", "port_rcv_packets", "port_xmit_packets",
            "port_xmit_wait", "symbol_error", "link_downed",
            "port_rcv_remote_physical_errors", "port_xmit_constraint_errors",
        ),
        _C,
    ),
    **dict.fromkeys(
        (
            "local_ack_timeout_err", "packet_seq_err", "implied_nak_seq_err",
            "out_of_sequence", "roce_adp_retrans", "rnr_nak_retry_err",
            "out_of_buffer", "req_transport_retries_exceeded", "req_cqe_flush_error",
            "resp_cqe_flush_error", "np_cnp_sent", "rp_cnp_handled",
            "np_ecn_marked_roce_packets", "rx_icrc_encapsulated",
        ),
        _H,
    ),
    **dict.fromkeys(
        (
            "tx_prio3_pause", "tx_prio3_pause_duration", "rx_prio3_pause",
            "rx_prio3_pause_duration", "tx_pause_storm_warning_events",
            "outbound_pci_stalled_wr", "outbound_pci_stalled_wr_events",
            "rx_discards_phy", "rx_prio0_bytes", "rx_prio3_bytes",
        ),
        _E,
    ),
}  # fmt: skip

ROCE = tuple(
    replace(rail, link_layer=LinkLayer.ETHERNET, netdev=f"eth{rail.rail}")
    for rail in RAILS
)


def specs_of(files: dict[str, Directory], driver: str) -> dict[str, CounterSpec]:
    """Return the catalogue's rows of these files."""
    found = {}
    for file, directory in files.items():
        spec = lookup(directory, file, driver)
        assert spec is not None, (driver, file)
        found[file] = spec
    return found


class Rails(Node):
    """Eight rails that a job keeps busy; what else happens is said by the test."""

    def __init__(
        self,
        *detectors: type[Detector],
        infos: tuple[PortInfo, ...] = ROCE,
        files: dict[str, Directory] = MLX5,
        driver: str = "mlx5_core",
        **options: Any,
    ) -> None:
        super().__init__(
            *detectors, infos=infos, files=tuple(files), begin=False, **options
        )
        self.specs.update(specs_of(files, driver))
        assert family(driver) is not None
        self.each: dict[int, dict[str, float]] = {}
        self.load = 0.3
        self.step_all()

    def every(self, rail: int, **rates: float) -> None:
        """Let counters of a rail rise by so much a second from now on."""
        self.each.setdefault(rail, {}).update(rates)

    def all(self, **rates: float) -> None:
        """Let counters of all rails rise so."""
        for rail in range(len(self.ids)):
            self.every(rail, **rates)

    def still(self, *rails: int) -> None:
        """Let nothing rise any more, on these rails or on all."""
        for rail in rails or tuple(self.each):
            self.each.pop(rail, None)

    def step_all(self, seconds: float = 5.0) -> None:
        """Let a while of traffic pass, with all that the test has told."""
        octets = self.load * LINE * seconds
        traffic = {
            "port_rcv_data": octets / 4, "port_xmit_data": octets / 4,
            "port_rcv_packets": octets / PACKET, "port_xmit_packets": octets / PACKET,
        }  # fmt: skip
        for rail, where in enumerate(self.ids):
            known = self.of(where).values
            grown = {
                name: rate * seconds for name, rate in self.each.get(rail, {}).items()
            }
            for name, amount in {**traffic, **grown}.items():
                if name in known:
                    self.grow(where, **{name: round(amount)})
        super().step_all(seconds)

    def found(self, kind: str) -> list[Finding]:
        """Return what the detectors find of a kind now."""
        return [finding for finding in self.findings if finding.kind == kind]
