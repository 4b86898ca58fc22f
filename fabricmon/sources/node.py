"""The node itself: its boot, and the GPUs that tell compute ports from others."""

from __future__ import annotations

from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import Accelerators, BootInfo, ReadFailure, Record, Target
from fabricmon.parse.sysfs import parse_uptime
from fabricmon.parse.text import decode
from fabricmon.sources.paths import DMI_PRODUCT, PCI_DEVICES, UPTIME

GPU_CLASSES = ("0x0302", "0x0380", "0x1200")
"""3D controller, other display controller, processing accelerator (PCI code list)."""


def poll_boot(host: Host, _target: Target, _config: Config) -> tuple[BootInfo, ...]:
    """Say which boot this is, how old it is and what the machine calls itself."""
    uptime = host.read(UPTIME)
    product = host.read(DMI_PRODUCT)
    return (
        BootInfo(
            at=host.monotonic(),
            boot_id=host.boot_id(),
            uptime_seconds=None
            if isinstance(uptime, ReadError)
            else parse_uptime(uptime),
            product=None if isinstance(product, ReadError) else _line(product),
            tells_links=host.tells_links,
        ),
    )


def poll_accelerators(
    host: Host, _target: Target, _config: Config
) -> tuple[Record, ...]:
    """List the GPUs by the class of every PCI function: no driver is needed."""
    addresses = host.names(PCI_DEVICES)
    if isinstance(addresses, ReadError):
        if addresses.errno == "ENOENT":  # no PCI bus here, so no GPU on it
            return (Accelerators(host.monotonic(), ()),)
        message = "cannot list PCI functions, so no port can be told to be near a GPU"
        return (ReadFailure(None, None, PCI_DEVICES, addresses.errno, message),)
    folders = [f"{PCI_DEVICES}/{address}" for address in addresses]
    classes = host.read_many([f"{folder}/class" for folder in folders])
    paths = (
        host.target(folder)
        for folder, code in zip(folders, classes, strict=True)
        if not isinstance(code, ReadError)
        and _line(code or b"").startswith(GPU_CLASSES)
    )
    return (Accelerators(host.monotonic(), tuple(path for path in paths if path)),)


def _line(raw: bytes) -> str:
    return decode(raw).strip()
