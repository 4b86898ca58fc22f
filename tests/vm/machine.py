"""Virtual machines with real RDMA devices and a real systemd, emulated by qemu.

No KVM: which hosts have one that boots a stock kernel is not known beforehand, and a
test that behaves alike everywhere is worth its half minute.
"""

import fcntl
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import fabricmon
from tests.support.programs import MISSING, find, require

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FOLDER = ROOT / "build" / "vm"
"""Where images are kept, and what the last run showed."""

SECONDS = 1500
"""After so long a machine is hung: where little else runs, all take a fifth of it."""

MEMORY_MIB = 640
PROCESSORS = 2
NO_PACKAGES = 75

# The agent runs from the packages that the host tested, some of which are compiled
# for one version of Python: the suite that has it is taken.
_SUITES = {(3, 11): "bookworm", (3, 13): "trixie"}


def image() -> Path:
    """Return the folder of the image, made before or now; skip where it cannot be."""
    suite = _SUITES.get(sys.version_info[:2])
    if suite is None:
        version = ".".join(map(str, sys.version_info[:2]))
        pytest.skip(f"{MISSING}Python 3.11 or 3.13, as Debian has (this is {version})")
    require("qemu-system-x86_64")
    path = FOLDER / f"image-{suite}-{_key(suite)}"
    with only_one("image"):
        if not path.exists():
            _build(suite, path)
    return path


def run(task: str, made: Path, folder: Path, debs: Iterable[Path] = ()) -> None:
    """Boot a machine and run a shell command in it; `judge` tells how that went.

    Args:
        task: The command; /share holds the agent, the tests' guest side, the unit
            and fakeib.ko.
        made: The image.
        folder: An empty folder, which becomes /out.
        debs: Packages to lie in /share/debs.
    """
    with tempfile.TemporaryDirectory(prefix="fabricmon-vm-") as temporary:
        share = Path(temporary, "share")
        _fill(share, made, task)
        for deb in debs:
            (share / "debs").mkdir(exist_ok=True)
            shutil.copy(deb, share / "debs")
        console = Path(temporary, "console")
        console.touch()
        command = _qemu(made, share, folder, console)
        qemu = folder / "qemu.log"
        with qemu.open("wb") as log, suppress(subprocess.TimeoutExpired):
            subprocess.run(
                command,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | {"TMPDIR": temporary},
                timeout=SECONDS,
            )
        shutil.copy(console, folder)


def judge(folder: Path) -> None:
    """Fail with the reason unless what `run` ran in a machine succeeded."""
    status = folder / "status"
    if not status.exists():
        last = "".join(
            (folder / name).read_text(errors="replace")[-3000:]
            for name in ("qemu.log", "console")
            if (folder / name).exists()
        )
        raise AssertionError(f"no result; the limit is {SECONDS} s\n{last}")
    if status.read_text().strip() != "0":
        raise AssertionError((folder / "output").read_text(errors="replace")[-3000:])


@contextmanager
def only_one(name: str) -> Iterator[None]:
    """Let one of all processes and threads in at a time."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _key(suite: str) -> str:
    """Return a digest of everything that the image is made from."""
    digest = hashlib.sha256(suite.encode())
    for path in sorted([*HERE.glob("image/*"), *HERE.glob("fakeib/*")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _build(suite: str, path: Path) -> None:
    for program in ("mmdebstrap", "mke2fs"):
        require(program)
    if os.geteuid():
        pytest.skip(f"{MISSING}root (makes the virtual machine's image)")
    for old in FOLDER.glob("image-*/"):
        shutil.rmtree(old)
    built = subprocess.run(
        ["bash", HERE / "image" / "build.sh", suite, HERE / "fakeib", path],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    path.with_suffix(".log").write_text(built.stdout)
    if built.returncode == NO_PACKAGES:
        why = (built.stdout.strip().splitlines() or ["no reason given"])[-1]
        pytest.skip(f"{MISSING}packages of Debian {suite} from the network ({why})")
    assert not built.returncode, built.stdout[-3000:]


def _fill(share: Path, made: Path, task: str) -> None:
    """Lay out what the machine sees as /share."""
    _copy_packages(share / "site")
    guest = share / "tests" / "vm" / "guest"
    shutil.copytree(HERE / "guest", guest, ignore=shutil.ignore_patterns("__py*"))
    shutil.copytree(ROOT / "systemd", share / "systemd")
    shutil.copy(made / "fakeib.ko", share)
    (share / "task").write_text(f"{task}\n")


def _copy_packages(site: Path) -> None:
    """Copy the agent under test and everything it needs, without the network."""
    package = Path(fabricmon.__file__).parent
    shutil.copytree(package, site / "fabricmon")
    for name in sorted(_needed("fabricmon", set())):
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or ():
            if ".." not in file.parts:
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(str(file.locate()), target)


def _needed(name: str, seen: set[str]) -> set[str]:
    """Return the distributions that one needs on this machine, without itself."""
    for line in importlib.metadata.requires(name) or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if requirement.name not in seen and (marker is None or marker.evaluate()):
            seen.add(requirement.name)
            _needed(requirement.name, seen)
    return seen


def _qemu(made: Path, share: Path, out: Path, console: Path) -> list[str]:
    # The kernel ends the machine should this process die before it.
    setpriv = find("setpriv")
    guard = [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []
    append = (
        "console=ttyS0 panic=-1 quiet mitigations=off random.trust_cpu=on "
        "systemd.unit=task.target systemd.show_status=0 net.ifnames=0"
    )
    shared = "security_model=none,multidevs=remap"
    return [
        *guard,
        require("qemu-system-x86_64"),
        *("-accel", "tcg,thread=multi", "-cpu", "max", "-M", "q35"),
        *("-m", str(MEMORY_MIB), "-smp", str(PROCESSORS)),
        *("-nodefaults", "-no-user-config", "-no-reboot"),
        *("-display", "none", "-nic", "none"),
        *("-kernel", str(made / "vmlinuz"), "-initrd", str(made / "initrd")),
        *("-append", append, "-serial", f"file:{console}"),
        "-drive",
        f"file={made / 'root.img'},format=raw,if=virtio,snapshot=on,cache=unsafe",
        *("-device", "virtio-rng-pci"),
        "-virtfs",
        f"local,path={share},mount_tag=share,{shared},readonly=on",
        *("-virtfs", f"local,path={out},mount_tag=out,{shared}"),
    ]
