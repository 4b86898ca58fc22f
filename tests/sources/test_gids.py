"""GIDs of RoCE ports."""

from __future__ import annotations

from fabricmon.model import Gid, GidTable, PortId, Target
from fabricmon.sources.gids import EMPTY_GIDS, LEAST_GIDS, MAX_GIDS
from tests.fake_host import FakeHost
from tests.manifest import SYSFS
from tests.sources.polls import every, hca_of, only, poll

PORT = "/sys/class/infiniband/mlx5_0/ports/1"
UNSET = "0000:0000:0000:0000:0000:0000:0000:0000"
MAPPED = "0000:0000:0000:0000:0000:ffff:0a14:1e02"


def node() -> FakeHost:
    """Return a node with one RoCE port whose table has a hole, as mlx5 shows it."""
    host = FakeHost(SYSFS / "sysfs-roce-retrans-heavy.manifest")
    local = "fe80:0000:0000:0000:9ab4:48ff:fef4:56b0"
    rows = {0: (local, "IB/RoCE v1"), 1: (local, "RoCE v2"), 6: (MAPPED, "RoCE v2")}
    for index in range(256):
        gid, kind = rows.get(index, (UNSET, None))
        host.put(f"{PORT}/gids/{index}", f"{gid}\n")
        for name, text in (("types", kind), ("ndevs", kind and "ens6np0")):
            path = f"{PORT}/gid_attrs/{name}/{index}"
            if text is None:
                host.fail(path, "EINVAL")
            else:
                host.put(path, f"{text}\n")
    return host


def table(host: FakeHost) -> GidTable:
    """Return the table of the port."""
    hca = hca_of(host, "mlx5_0")
    return only(GidTable, poll("gids", host, Target("mlx5_0", hca)))


def test_what_is_set() -> None:
    """Index, address, the kernel's word for the type, the network device."""
    found = table(node())
    assert found.port == PortId("mlx5_0", 1)
    assert [gid.index for gid in found.gids] == [0, 1, 6]
    assert found.gids[2] == Gid(6, MAPPED, "RoCE v2", "ens6np0")


def test_it_is_cheap() -> None:
    """No firmware command, and no read of the hundreds of slots that are empty."""
    host = node()
    hca = hca_of(host, "mlx5_0")
    host.opened.clear()
    poll("gids", host, Target("mlx5_0", hca))
    assert host.firmware_reads == 0
    assert host.opened.total() <= LEAST_GIDS + EMPTY_GIDS


def test_a_long_table_ends() -> None:
    """A port with more addresses than anyone chooses among is read so far."""
    host = node()
    for index in range(256):
        host.put(f"{PORT}/gids/{index}", MAPPED)
    assert len(table(host).gids) == MAX_GIDS


def test_an_address_that_goes() -> None:
    """Between two reads an entry may vanish: what is not there stays unknown."""
    host = node()
    host.fail(f"{PORT}/gid_attrs/types/6", "EINVAL")
    assert table(host).gids[2] == Gid(6, MAPPED, "", "ens6np0")


def test_infiniband_has_none() -> None:
    """Nobody chooses among the GIDs of an InfiniBand port."""
    host = FakeHost(SYSFS / "sysfs-h100-ndr-bond.manifest")
    hca = hca_of(host, "mlx5_0")
    assert poll("gids", host, Target("mlx5_0", hca)) == ()


def test_a_port_without_a_table() -> None:
    """A driver without one says nothing, which is no failure."""
    host = node()
    host.remove(f"{PORT}/gids")
    hca = hca_of(host, "mlx5_0")
    assert every(GidTable, poll("gids", host, Target("mlx5_0", hca))) == ()
