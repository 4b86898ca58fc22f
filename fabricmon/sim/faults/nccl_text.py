"""Lines that NCCL prints of what only a fault knows; wording of 2.28.

What follows from an outage or a crash the model prints itself.
"""

from __future__ import annotations

_PREFIX = "{node}:{pid}:{tid} [{gpu}] NCCL {level} "
_FIRST_PID = 21000


def line(node: str, gpu: int, level: str, text: str) -> str:
    """Return a line of one process, ended."""
    pid = _FIRST_PID + gpu
    head = _PREFIX.format(node=node, pid=pid, tid=pid + 400, gpu=gpu, level=level)
    return f"{head}{text}\n"


def retry_exceeded(node: str, gpu: int, peer: str, device: str) -> str:
    """Return the completion that says that a peer does not answer (status 12)."""
    text = (
        f"NET/IB: Got completion from peer {peer}<{40000 + gpu}> with status=12 opcode=0 "
        f"len=0 vendor err 129 (Send) hca {device}"
    )
    return "\n" + line(node, gpu, "WARN", text)


def gpu_direct_disabled(node: str, gpu: int, device: str) -> str:
    """Return what is printed at the start where memory is staged through the host."""
    text = f"NET/IB : GPU Direct RDMA Disabled for HCA {gpu} '{device}'"
    return line(node, gpu, "INFO", text)


def channel_without_gpu_direct(node: str, gpu: int) -> str:
    """Return a channel that does not name GPU Direct."""
    text = f"Channel 00/0 : {gpu}[{gpu}] -> {gpu + 8}[{gpu}] [send] via NET/IB/{gpu}"
    return line(node, gpu, "INFO", text)


def gid_changed(node: str, gpu: int, device: str) -> str:
    """Return the asynchronous event of an address that moved."""
    text = f"NET/IB : {device}:1 GID table changed"
    return line(node, gpu, "WARN", text)


def connect_failed(node: str, gpu: int, device: str) -> str:
    """Return a queue pair that finds no way to its peer."""
    text = (
        "Call to ibv_modify_qp failed with 110 Connection timed out, on dev "
        f"{device}:1, curr state INIT, next state RTR, local GID index 3, local GID "
        "::ffff:10.1.0.1, remote GID ::ffff:10.1.0.2"
    )
    return "\n" + line(node, gpu, "WARN", text)


def partition_refused(node: str, gpu: int, device: str) -> str:
    """Return a queue pair whose partition key is not in the table."""
    text = (
        "Call to ibv_modify_qp failed with 22 Invalid argument, on dev "
        f"{device}:1, curr state RESET, next state INIT, local GID index 0, local GID "
        "fe80::1, remote GID N/A"
    )
    return "\n" + line(node, gpu, "WARN", text)


def aborted(node: str, gpu: int) -> str:
    """Return what a user's interrupt leaves behind."""
    return line(
        node, gpu, "WARN", "socketProgress: Connection closed by remote peer"
    ) + line(
        node,
        gpu,
        "INFO",
        f"comm 0x55d0c0ffee{gpu:02x} rank {gpu} nranks 16 cudaDev {gpu} busId 1b000 - "
        "Abort COMPLETE",
    )
