"""A node of as many mlx5 InfiniBand HCAs as a test wants, with real file names."""

from fabricmon.sources.paths import NET_CLASS, RDMA_CLASS
from tests.fake_host import FakeHost
from tests.manifest import SYSFS, entries

_CASE = SYSFS / "sysfs-h100-ndr-bond.manifest"
_ORIGINAL = "pci0000:18/0000:18:01.0/0000:1a:00.0/infiniband/mlx5_0"


def mlx5_node(hcas: int = 8, *, netdevs: bool = True) -> FakeHost:
    """Return a node of equal HCAs; each has an IPoIB network device if ``netdevs``."""
    host = FakeHost()
    for number in range(hcas):
        add_hca(host, number)
        if netdevs:
            add_ipoib(host, number)
    return host


def function_of(number: int) -> str:
    """Return the folder of the PCI function of an HCA."""
    bus = f"{16 * (number + 1):02x}"
    return f"/sys/devices/pci0000:{bus}/0000:{bus}:01.0/0000:{bus[0]}a:00.0"


def add_hca(host: FakeHost, number: int) -> str:
    """Add one HCA; return its name."""
    name = f"mlx5_{number}"
    function = function_of(number)
    folder = f"{function}/infiniband/{name}"
    for entry in entries(_CASE):
        _, found, file = entry.path.partition(f"{_ORIGINAL}/")
        if found and entry.link is None:
            host.put(f"{folder}/{file}", entry.text)
    host.put(f"{folder}/node_guid", f"2c88:3103:009a:{number:04x}\n")
    host.link(f"{folder}/device", f"../../../{function.rpartition('/')[2]}")
    host.link(f"{RDMA_CLASS}/{name}", f"../..{folder.removeprefix('/sys')}")
    host.put("/sys/bus/pci/drivers/mlx5_core/module", "")
    host.link(f"{function}/driver", "../../../../bus/pci/drivers/mlx5_core")
    return name


def add_ipoib(host: FakeHost, number: int) -> str:
    """Give an HCA a network device that is up; return its name."""
    name = f"ib{number}"
    folder = f"{function_of(number)}/net/{name}"
    for file, text in {
        "operstate": "up",
        "carrier": "1",
        "carrier_changes": "3",
        "carrier_up_count": "2",
        "carrier_down_count": "1",
        "dev_port": "0",
        "ifindex": str(number + 2),
        "statistics/rx_errors": "0",
    }.items():
        host.put(f"{folder}/{file}", f"{text}\n")
    host.link(f"{NET_CLASS}/{name}", f"../..{folder.removeprefix('/sys')}")
    return name
