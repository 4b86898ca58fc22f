"""Run a program as a container runtime runs a pod that may do nothing.

A user that is not root, a root that cannot be written, namespaces of its own, no
capability, no way to get one, and the system calls that runtimes refuse by default
refused. The network is this machine's, so that a test can ask the agent.
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from errno import EPERM
from pathlib import Path

import pyseccomp  # type: ignore[import-untyped]
import pytest

from tests.support.programs import MISSING, require

USER = 65534
_FILTER = "(descriptor of the filter)"

# What the profiles of containerd and CRI-O refuse a process without capabilities.
_REFUSED = (
    *("acct", "add_key", "bpf", "clock_adjtime", "clock_settime", "create_module"),
    *("delete_module", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick"),
    *("init_module", "ioperm", "iopl", "kcmp", "kexec_file_load", "kexec_load"),
    *("keyctl", "lookup_dcookie", "mount", "mount_setattr", "move_mount"),
    *("move_pages", "name_to_handle_at", "nfsservctl", "open_by_handle_at"),
    *("open_tree", "perf_event_open", "personality", "pivot_root", "process_vm_readv"),
    *("process_vm_writev", "ptrace", "quotactl", "reboot", "request_key", "setns"),
    *("settimeofday", "swapoff", "swapon", "syslog", "umount2", "unshare"),
    *("userfaultfd", "vhangup"),
)


def command(
    root: Path,
    words: Sequence[str],
    reads: Mapping[str, Path],
    writes: Mapping[str, Path],
    environment: Mapping[str, str],
) -> list[str]:
    """Return the command that runs words in a pod, for `start`.

    Args:
        root: The image's root file system.
        words: The command within.
        reads: Mounts that cannot be written, by their place in the pod.
        writes: Mounts that can; they must belong to `USER`.
        environment: All that the command has.
    """
    user = (f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
    sandbox = [
        *(require("setpriv"), *user, "--bounding-set=-all", "--inh-caps=-all", "--"),
        *(require("bwrap"), "--unshare-user", "--unshare-pid", "--unshare-ipc"),
        *("--unshare-uts", "--unshare-cgroup-try", "--hostname", "node01"),
        *("--uid", str(USER), "--gid", str(USER), "--cap-drop", "ALL"),
        *("--die-with-parent", "--seccomp", _FILTER, "--clearenv"),
        *("--ro-bind", str(root), "/", "--proc", "/proc", "--dev", "/dev"),
        *("--tmpfs", "/host"),  # a runtime makes what it mounts on
    ]
    for place, path in reads.items():
        sandbox += ["--ro-bind", str(path), place]
    for place, path in writes.items():
        sandbox += ["--bind", str(path), place]
    for name, value in environment.items():
        sandbox += ["--setenv", name, value]
    return [*sandbox, "--remount-ro", "/host", "--", *words]


def seccomp() -> int:
    """Return a descriptor of the compiled filter, to be inherited as it is."""
    refuse = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for name in _REFUSED:
        refuse.add_rule(pyseccomp.ERRNO(EPERM), name)
    with tempfile.TemporaryFile() as file:
        refuse.export_bpf(file)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        return os.dup(file.fileno())


def start(words: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start what `command` returned, with its output in a file."""
    descriptor = seccomp()
    try:
        with log.open("ab") as output:
            return subprocess.Popen(
                [str(descriptor) if word == _FILTER else word for word in words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(descriptor,),
            )
    finally:
        os.close(descriptor)


def require_pods(root: Path) -> None:
    """Skip where this machine may not run one."""
    words = command(root, ["fabricmon", "--version"], {}, {}, {"PATH": "/usr/bin"})
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        if start(words, log).wait(60):
            text = log.read_text()
            if "namespace" in text or "Operation not permitted" in text:
                pytest.skip(f"{MISSING}right to run a pod ({text.strip()[:100]})")
            raise AssertionError(text)
