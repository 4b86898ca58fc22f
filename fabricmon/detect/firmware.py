"""Devices of one model that run different firmware: ``config_drift``.

Only within the node: a node that differs from its like is the fleet's to see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf

from fabricmon.config import Config
from fabricmon.model import (
    Action,
    Blindness,
    Evidence,
    Finding,
    Hca,
    Severity,
    Subject,
    View,
)
from fabricmon.summaries import one_line

LOOK_SECONDS = 10.0
"""How often firmware is compared: it is read once a minute."""

MOST_DEVICES = 8
"""Devices named in one finding."""

_EMPTY = frozenset({"", "0.0.0", "0.0.0.0"})  # noqa: S104 - what virtual ones say


class FirmwareDrift:
    """Compares the firmware of devices of one model."""

    name = "firmware"
    kinds: tuple[str, ...] = ("config_drift",)

    def __init__(self, config: Config) -> None:
        """Take for how long devices may differ."""
        self._settle = config.device_health.firmware_settle_seconds
        self._look_at = -inf
        self._odd: tuple[Hca, ...] = ()
        self._usual = ""
        self._since: float | None = None

    def judge(self, view: View) -> Iterator[Finding]:
        """Yield the devices that differ, once they have for long enough."""
        if view.now >= self._look_at:
            self._look_at = view.now + LOOK_SECONDS
            self._compare(view)
        if self._since is not None and view.now - self._since >= self._settle:
            yield self._finding(self._since + view.onset_offset)

    def blind(self, view: View) -> Iterator[Blindness]:
        """Yield nothing: a device without firmware has none to differ."""
        del view
        yield from ()

    def save(self) -> bytes:
        """Return nothing: the next agent compares anew."""
        return b""

    def restore(self, saved: bytes, view_offset: float) -> None:
        """Take nothing back."""

    def _compare(self, view: View) -> None:
        models: dict[tuple[str | None, str | None], list[Hca]] = {}
        for hca in view.hcas:
            model = hca.board_id or hca.hca_type
            if not hca.is_vf and model and (hca.firmware or "") not in _EMPTY:
                models.setdefault((model, hca.driver), []).append(hca)
        odd: list[Hca] = []
        for hcas in models.values():
            counts = Counter(hca.firmware for hca in hcas)
            if len(counts) > 1:
                usual = counts.most_common(1)[0][0]
                odd += [hca for hca in hcas if hca.firmware != usual]
                self._usual = usual or ""
        self._odd = tuple(odd)
        if not odd:
            self._since = None
        elif self._since is None:
            self._since = view.now

    def _finding(self, onset: float) -> Finding:
        first = self._odd[0]
        more = f" and {len(self._odd) - 1} more" if self._odd[1:] else ""
        return Finding(
            kind="config_drift",
            subject=Subject(),
            onset=onset,
            evidence=tuple(
                Evidence("fw_ver", hca.firmware, "", f"infiniband/{hca.name}",
                         self._usual)
                for hca in self._odd[:MOST_DEVICES]
            ),
            summary=one_line(
                f"{first.name}{more}: firmware {first.firmware}, others of its model "
                f"have {self._usual}; no fault of a link by itself"
            ),
            severity=Severity.WARNING,
            action=Action.INSPECT,
        )  # fmt: skip
