"""A record with every key of the trace format, as JSON and as read."""

from typing import Any

from fabricmon.host.trace import (
    Bridging,
    Module,
    Printed,
    Ramp,
    TraceRecord,
)

EVERY_KEY: dict[str, Any] = {
    "t": 12.5,
    "set": {"/sys/a": "4: ACTIVE\n"},
    "ramp": {"/sys/b": [10, 2.5], "/sys/c": [10, -1, 20]},
    "err": {"/sys/d": "EINVAL", "ethtool:eth0": "EBUSY"},
    "dir": ["/sys/e"],
    "slow": {"/sys/a": 0.25},
    "hang": {"/sys/a": 30},
    "del": ["/sys/f"],
    "link": {"/sys/g": "../a"},
    "ethtool": {"eth0": {"rx": 5, "tx": [1, 2], "x": [1, 2.5, 9]}, "eth1": None},
    "kmsg": ["mlx5_core 0000:1a:00.0: Link down"],
    "append": {"/var/log/nccl": "line\n"},
    "truncate": ["/var/log/nccl"],
    "rotate": {"/var/log/nccl": "/var/log/nccl.1"},
    "command": {"ibstat": {"stdout": "CA", "stderr": "x", "exit": 1, "seconds": 2}},
    "boot_id": "b2",
    "module": {
        "mlx5_0/1": {
            "temperature_c": 71.5,
            "rx_power_dbm": [-1.5, None],
            "tx_power_dbm": [1],
            "bias_ma": [7.1],
            "vendor": "V",
            "part": "P",
            "serial": "S",
        }
    },
    "dcb": {
        "eth0": {"pfc_enabled": [3], "ecn": {"a": 1}, "dscp_to_priority": {"26": 3}}
    },
    "devlink": {"0000:1a:00.0": {"fw": "healthy"}},
    "clock_error": 0.002,
    "wall_step": -1.5,
    "gap": 60,
    "restart": True,
}
RECORD = TraceRecord(
    t=12.5,
    set={"/sys/a": "4: ACTIVE\n"},
    ramp={"/sys/b": Ramp(10, 2.5), "/sys/c": Ramp(10, -1, 20)},
    err={"/sys/d": "EINVAL", "ethtool:eth0": "EBUSY"},
    dir=["/sys/e"],
    slow={"/sys/a": 0.25},
    hang={"/sys/a": 30},
    deleted=["/sys/f"],
    link={"/sys/g": "../a"},
    ethtool={"eth0": {"rx": 5, "tx": Ramp(1, 2), "x": Ramp(1, 2.5, 9)}, "eth1": None},
    kmsg=["mlx5_core 0000:1a:00.0: Link down"],
    append={"/var/log/nccl": "line\n"},
    truncate=["/var/log/nccl"],
    rotate={"/var/log/nccl": "/var/log/nccl.1"},
    command={"ibstat": Printed("CA", "x", 1, 2)},
    boot_id="b2",
    module={
        "mlx5_0/1": Module(71.5, (-1.5, None), (1.0,), (7.1,), "V", "P", "S"),
    },
    dcb={"eth0": Bridging((3,), {"a": 1}, {"26": 3})},
    devlink={"0000:1a:00.0": {"fw": "healthy"}},
    clock_error=0.002,
    wall_step=-1.5,
    gap=60,
    restart=True,
)
