"""What is expected of the hardware."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from fabricmon.config.words import Section


class Expectation(Section, frozen=True):
    """What is expected of the ports whose names match."""

    ports: tuple[str, ...]
    """Patterns on ``device/port`` (``mlx5_*/1``) or on a PCI address."""
    rate_gbps: Annotated[float, Meta(gt=0)] | None = None
    """Expected rate of the link."""
    role: Literal["compute", "storage", "management", "unknown"] | None = None
    """Role of the port; configured wins over inferred."""
    rail: int | str | None = None
    """Rail of the port; configured wins over PCI order."""
    up: bool | None = None
    """True: alarm when down even if it was never seen up. False: never alarm."""


class Profile(Section, frozen=True):
    """A hardware product: how many ports of which rate and role it has."""

    product: str
    """Pattern on /sys/class/dmi/id/product_name."""
    ports: tuple[Expectation, ...] = ()
    """What is expected of its ports."""
    devices: Annotated[int, Meta(ge=0)] | None = None
    """RDMA devices with the role compute."""
