from fabricmon.model import Accelerators, BootInfo, LinkEvent, ReadFailure
from tests.fake_host import FakeHost
from tests.sources.polls import only, poll

PCI = "/sys/bus/pci/devices"


def add_function(host: FakeHost, address: str, code: str) -> str:
    """Add a PCI function; return its folder."""
    folder = f"/sys/devices/pci0000:17/0000:17:01.0/{address}"
    host.put(f"{folder}/class", f"{code}\n")
    host.link(
        f"{PCI}/{address}", f"../../../devices{folder.removeprefix('/sys/devices')}"
    )
    return folder


class TestBoot:
    def test_boot(self) -> None:
        """Boot, age and product come from the node's own files."""
        host = FakeHost()
        host.put("/proc/uptime", "350735.47 234388.90\n")
        host.put("/sys/class/dmi/id/product_name", "DGXH100\n")
        assert only(BootInfo, poll("boot", host)) == BootInfo(
            host.now, "boot-1", 350735.47, "DGXH100"
        )

    def test_node_that_does_not_tell(self) -> None:
        """Without the files nothing is made up."""
        boot = only(BootInfo, poll("boot", FakeHost()))
        assert (boot.uptime_seconds, boot.product) == (None, None)


class TestAccelerators:
    def test_gpus_by_class(self) -> None:
        """3D controllers, other display controllers and accelerators are GPUs."""
        host = FakeHost()
        gpus = tuple(
            add_function(host, f"0000:18:0{place}.0", code)
            for place, code in enumerate(("0x030200", "0x038000", "0x120000"))
        )
        add_function(host, "0000:18:05.0", "0x030000")  # a console's display adapter
        add_function(host, "0000:18:06.0", "0x020700")
        assert only(Accelerators, poll("accelerators", host)).paths == gpus

    def test_function_without_class(self) -> None:
        """A function that cannot be read costs itself."""
        host = FakeHost()
        gpu = add_function(host, "0000:18:00.0", "0x030200")
        host.fail(f"{PCI}/0000:19:00.0/class", "EIO")
        assert only(Accelerators, poll("accelerators", host)).paths == (gpu,)

    def test_no_bus_has_no_gpu(self) -> None:
        """A machine without PCI has none, and nothing failed."""
        assert only(Accelerators, poll("accelerators", FakeHost())).paths == ()

    def test_unreadable_bus_is_a_failure(self) -> None:
        """Not being allowed to look is told from having none."""
        host = FakeHost()
        host.fail_folder(PCI, "EACCES")
        assert only(ReadFailure, poll("accelerators", host)).errno == "EACCES"


def test_link_events_come_once() -> None:
    """What the kernel told is handed on and forgotten."""
    host = FakeHost()
    event = LinkEvent(host.now, "ib0", up=False)
    host.events.append(event)
    assert poll("link_events", host) == (event,)
    assert poll("link_events", host) == ()
