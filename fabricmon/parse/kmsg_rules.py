"""The table of kernel log rules: one row per message of a driver or of PCIe.

A message is what follows the head (driver, PCI address, network device). A row needs a
driver of its ``drivers`` (none means any), its ``anchor`` in the message, and its
``pattern`` to be found there. The groups ``watts``, ``gbps``, ``capable``, ``bridge``,
``source``, ``netdev``, ``bits`` and ``mask`` are taken from it. Wordings are those of the Linux sources
(mlx5 ``events.c``, ``health.c``, ``cmd.c``, ``pagealloc.c``; bnxt, ice, irdma, EFA, ionic;
``pci.c``, ``pcie/aer.c``, ``pcie/dpc.c``, ``sch_generic.c``), from 4.19 on.
"""

from __future__ import annotations

from fabricmon.parse.kernel_event import KernelKind as K
from fabricmon.parse.log_event import LogSeverity
from fabricmon.value import Value

_INFO, _WARNING = LogSeverity.INFO, LogSeverity.WARNING
_ERROR, _CRITICAL = LogSeverity.ERROR, LogSeverity.CRITICAL

MLX5 = ("mlx5_core",)
BROADCOM = ("bnxt_en", "bnxt_re", "infiniband")
INTEL = ("ice", "irdma", "infiniband")
EFA = ("efa", "infiniband")
IONIC = ("ionic", "ionic_rdma")
NETDEV = ("mlx5_core", "mlx4_en", "ionic")
ROOT = ("pcieport",)

PCI_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]"


class KernelRule(Value, frozen=True):
    """One row; ``examples`` are whole lines that it knows, ``near_misses`` not."""

    id: str
    kind: K
    severity: LogSeverity
    drivers: tuple[str, ...]
    anchor: str
    pattern: str
    meaning: str
    examples: tuple[str, ...]
    near_misses: tuple[str, ...]


_MLX5 = "mlx5_core 0000:1a:00.0: "

RULES: tuple[KernelRule, ...] = (
    # -- Links ---------------------------------------------------------------------
    KernelRule(
        "link_down",
        K.LINK_DOWN,
        _WARNING,
        NETDEV,
        "ink down",
        r"^[Ll]ink down\b",
        "The link of a network device went down.",
        (
            "mlx5_core 0000:1a:00.0 eth3: Link down",
            _MLX5 + "Link down",
            "ionic 0000:24:00.0 enp36s0: Link down",
        ),
        ("mlx5_core 0000:1a:00.0 eth3: Link downgraded", "eth3: Link down"),
    ),
    KernelRule(
        "link_up",
        K.LINK_UP,
        _INFO,
        NETDEV,
        "ink up",
        r"^[Ll]ink up\b",
        "The link of a network device came up.",
        (
            "mlx5_core 0000:1a:00.0 eth3: Link up",
            "ionic 0000:24:00.0 enp36s0: Link up - 100 Gbps",
        ),
        ("mlx5_core 0000:1a:00.0 eth3: waiting for Link up",),
    ),
    KernelRule(
        "nic_link_down",
        K.LINK_DOWN,
        _WARNING,
        ("bnxt_en", "ice"),
        "NIC Link is ",
        r"^NIC Link is (?:Down|down)\b",
        "The link of a network device went down.",
        (
            "bnxt_en 0000:1a:00.0 eth3: NIC Link is Down",
            "ice 0000:31:00.0 ens1: NIC Link is Down",
        ),
        ("bnxt_en 0000:1a:00.0 eth3: NIC Link is Up, 200000 Mbps full duplex",),
    ),
    KernelRule(
        "nic_link_up",
        K.LINK_UP,
        _INFO,
        ("bnxt_en", "ice"),
        "NIC Link is ",
        r"^NIC Link is (?:Up|up)\b",
        "The link of a network device came up.",
        (
            ("bnxt_en 0000:1a:00.0 eth3: NIC Link is Up, 200000 Mbps full duplex, "
            "Flow control: none"),
            ("ice 0000:31:00.0 ens1: NIC Link is up 100 Gbps Full Duplex, Requested FEC: "
            "RS-FEC"),
        ),
        ("ice 0000:31:00.0 ens1: NIC Link is Down",),
    ),
    # -- Transceivers --------------------------------------------------------------
    KernelRule(
        "mlx5_module_unplugged",
        K.MODULE_UNPLUGGED,
        _WARNING,
        MLX5,
        "Port module event",
        r"Port module event: module \d+, Cable unplugged",
        "The cable or transceiver was pulled out.",
        (_MLX5 + "Port module event: module 0, Cable unplugged",),
        (_MLX5 + "Port module event: module 0, Cable plugged",),
    ),
    KernelRule(
        "mlx5_module_plugged",
        K.MODULE_PLUGGED,
        _INFO,
        MLX5,
        "Port module event",
        r"Port module event: module \d+, Cable plugged",
        "A cable or transceiver was put in.",
        (_MLX5 + "Port module event: module 0, Cable plugged",),
        (_MLX5 + "Port module event: module 0, Cable unplugged",),
    ),
    KernelRule(
        "mlx5_module_hot",
        K.MODULE_HOT,
        _CRITICAL,
        MLX5,
        "Port module event",
        r"Port module event\[error\]: module \d+, Cable error, High Temperature",
        "The transceiver is over its own alarm limit.",
        (
            _MLX5
            + "Port module event[error]: module 0, Cable error, High Temperature",
        ),
        (
            _MLX5
            + "Port module event[error]: module 0, Cable error, Unknown identifier",
        ),
    ),
    KernelRule(
        "mlx5_ports_powered_down",
        K.POWER_LOW,
        _ERROR,
        MLX5,
        "Port module event",
        r"Port module event\[error\]: module \d+, Cable error, One or more network ports "
        r"have been powered down due to insufficient",
        "Ports are off because the slot gives or advertises too little power.",
        (
            _MLX5 + "Port module event[error]: module 0, Cable error, One or more "
            "network ports have been powered down due to insufficient/unadvertised "
            "power on the PCIe slot. Please refer to the card's user manual for power "
            "specifications or contact Mellanox support.",
        ),
        (_MLX5 + "Port module event[error]: module 0, Cable error, High Temperature",),
    ),
    KernelRule(
        "mlx5_module_fault",
        K.MODULE_FAULT,
        _ERROR,
        MLX5,
        "Port module event[error]",
        r"Port module event\[error\]: module \d+, Cable error, "
        r"(?!High Temperature|One or more)",
        "The transceiver or cable reports an error.",
        (
            _MLX5 + "Port module event[error]: module 1, Cable error, Bus stuck (I2C or "
            "data shorted)",
            _MLX5 + "Port module event[error]: module 0, Cable error, Power budget "
            "exceeded",
        ),
        (_MLX5 + "Port module event[error]: module 0, Cable error, High Temperature",),
    ),
    KernelRule(
        "mlx5_sensor_hot",
        K.SENSOR_HOT,
        _WARNING,
        MLX5,
        "High temperature on sensors",
        # The first word are sensors 64 on, the transceivers; the second is the chip.
        r"High temperature on sensors with bit set "
        r"(?:(?:0x)?(?P<bits>[0-9a-f]{1,16}) )?",
        "A sensor of the card's chip, or of a transceiver, is over its limit.",
        (
            _MLX5 + "temp_warn:201:(pid 0): High temperature on sensors with bit set 0x0 "
            "0x1",
            _MLX5 + "temp_warn:170:(pid 0): High temperature on sensors with bit set 0 1",
            _MLX5 + "temp_warn:201:(pid 0): High temperature on sensors with bit set 0x1 "
            "0x0.",
        ),
        (_MLX5 + "print_health_info:520:(pid 0): synd 0x10: High temperature",),
    ),
    KernelRule(
        "bnxt_chip_hot",
        K.SENSOR_HOT,
        _WARNING,
        ("bnxt_en",),
        "thermal threshold",
        r"Chip temperature has (?:gone above|crossed) the \w+ thermal threshold",
        "The chip is over a limit.",
        (
            ("bnxt_en 0000:1a:00.0 eth3: Chip temperature has gone above the critical "
            "thermal threshold!"),
            ("bnxt_en 0000:1a:00.0 eth3: Chip temperature has crossed the fatal thermal "
            "threshold!"),
        ),
        (
            ("bnxt_en 0000:1a:00.0 eth3: Chip temperature has gone below the warning "
            "thermal threshold!"),
        ),
    ),
    # -- Power ---------------------------------------------------------------------
    KernelRule(
        "mlx5_power_low",
        K.POWER_LOW,
        _WARNING,
        MLX5,
        "insufficient power",
        r"Detected insufficient power on the PCIe slot \((?P<watts>\d{1,5})W\)",
        "The slot gives less power than the card asks for: its ports are throttled.",
        (
            _MLX5 + "mlx5_pcie_event:301:(pid 1207): Detected insufficient power on the "
            "PCIe slot (27W).",
        ),
        (_MLX5 + "mlx5_pcie_event:299:(pid 7): PCIe slot power capability was not "
         "advertised.",),
    ),
    KernelRule(
        "mlx5_power_enough",
        K.POWER_ENOUGH,
        _INFO,
        MLX5,
        "sufficient power",
        r"PCIe slot advertised sufficient power \((?P<watts>\d{1,5})W\)",
        "The slot gives enough power.",
        (
            _MLX5 + "mlx5_pcie_event:306:(pid 7): PCIe slot advertised sufficient power "
            "(75W).",
        ),
        (
            _MLX5 + "mlx5_pcie_event:301:(pid 7): Detected insufficient power on the PCIe "
            "slot (27W).",
        ),
    ),
    # -- Firmware and driver -------------------------------------------------------
    KernelRule(
        "mlx5_firmware_stuck",
        K.FIRMWARE_STUCK,
        _CRITICAL,
        MLX5,
        "device's health compromised",
        r"device's health compromised - reached miss count",
        "The firmware's own counter of life stands still.",
        (
            _MLX5 + "poll_health:825:(pid 0): device's health compromised - reached miss "
            "count",
        ),
        (_MLX5 + "print_health_info:506:(pid 0): assert_var[0] 0x00000001",),
    ),
    KernelRule(
        "mlx5_firmware_fatal",
        K.FIRMWARE_FATAL,
        _CRITICAL,
        MLX5,
        "",
        r"\bFatal error \d+ detected|synd 0x[0-9a-f]+: "
        r"(?:firmware internal error|unrecoverable hardware error)"
        r"|FW is unable to respond to initialization segment reads"
        r"|health recovery (?:flow aborted|failed)",
        "The firmware or the chip failed.",
        (
            _MLX5 + "poll_health:838:(pid 0): Fatal error 1 detected",
            _MLX5 + "print_health_info:458:(pid 0): synd 0x8: unrecoverable hardware "
            "error",
            _MLX5 + "mlx5_health_try_recover:381:(pid 1): health recovery flow aborted, "
            "PCI reads still not working",
        ),
        (
            _MLX5 + "mlx5_health_try_recover:335:(pid 9): health recovery succeeded",
            _MLX5 + "print_health_info:520:(pid 0): synd 0x10: High temperature",
        ),
    ),
    KernelRule(
        "mlx5_recovery_started",
        K.RECOVERY_STARTED,
        _ERROR,
        MLX5,
        "",
        r"starting health recovery flow|handling bad device here"
        r"|mlx5_pci_err_detected\b.*\bEnter\b|mlx5_error_sw_reset:\d+:\(pid \d+\): start",
        "The driver starts the device anew after an error.",
        (
            _MLX5 + "mlx5_health_try_recover:323:(pid 88): starting health recovery flow",
            _MLX5 + "mlx5_pci_err_detected Device state = 2 health sensors: 1 pci_status: "
            "1. Enter, pci channel state = 2",
            _MLX5 + "mlx5_error_sw_reset:231:(pid 88): start",
        ),
        (_MLX5 + "mlx5_error_sw_reset:256:(pid 88): end",),
    ),
    KernelRule(
        "mlx5_recovered",
        K.RECOVERED,
        _INFO,
        MLX5,
        "health recovery succe",
        r"health recovery succe(?:eded|ssful)",
        "The device works again.",
        (_MLX5 + "mlx5_health_try_recover:335:(pid 9): health recovery succeeded",),
        (_MLX5 + "mlx5_health_try_recover:323:(pid 88): starting health recovery flow",),
    ),
    KernelRule(
        "mlx5_command_recovered",
        K.RECOVERED,
        _INFO,
        MLX5,
        "recovered after timeout",
        r"\b[A-Z][A-Z0-9_]+\(0x[0-9a-f]+\) (?:Async, )?recovered after timeout",
        "A command was answered after all: only the word of it was lost.",
        (
            _MLX5 + "wait_func_handle_exec_timeout:1121:(pid 1): cmd[0]: "
            "CREATE_CQ(0x400) recovered after timeout",
            _MLX5 + "cb_timeout_handler:915:(pid 77): cmd[3]: CREATE_MKEY(0x200) Async, "
            "recovered after timeout",
        ),
        (
            _MLX5 + "wait_func_handle_exec_timeout:1128:(pid 1): cmd[0]: "
            "CREATE_CQ(0x400) No done completion",
        ),
    ),
    KernelRule(
        "mlx5_command_timeout",
        K.COMMAND_TIMEOUT,
        _ERROR,
        MLX5,
        "timeout",
        r"\b[A-Z][A-Z0-9_]+\(0x[0-9a-f]+\) (?:Async, )?timeout\. Will cause a leak"
        r"|cmd_exec timeout|canceled on out of queue timeout",
        "The firmware did not answer a command.",
        (
            _MLX5 + "wait_func:1167:(pid 4711): ACCESS_REG(0x805) timeout. Will cause a "
            "leak of a command resource",
            _MLX5 + "cb_timeout_handler:921:(pid 77): cmd[3]: CREATE_MKEY(0x200) Async, "
            "timeout. Will cause a leak of a command resource",
            _MLX5 + "wait_func:1150:(pid 4711): QUERY_VPORT_COUNTER(0x770) canceled on "
            "out of queue timeout.",
        ),
        (
            _MLX5 + "mlx5_cmd_out_err:809:(pid 3101): ACCESS_REG(0x805) op_mod(0x1) "
            "failed, status bad parameter(0x3), syndrome (0x305684), err(-22)",
        ),
    ),
    KernelRule(
        "mlx5_register_refused",
        K.REGISTER_REFUSED,
        _INFO,
        MLX5,
        "ACCESS_REG(",
        r"ACCESS_REG\(0x[0-9a-f]+\) op_mod\(0x[0-9a-f]+\) failed, status ",
        "A function without rights asked for a register: noise, no fault.",
        (
            _MLX5 + "mlx5_cmd_out_err:809:(pid 3101): ACCESS_REG(0x805) op_mod(0x1) "
            "failed, status bad parameter(0x3), syndrome (0x305684), err(-22)",
            _MLX5 + "mlx5_cmd_check:777:(pid 1): ACCESS_REG(0x805) op_mod(0x0) failed, "
            "status bad operation(0x2), syndrome (0x15c356)",
        ),
        (
            _MLX5 + "wait_func:1167:(pid 4711): ACCESS_REG(0x805) timeout. Will cause a "
            "leak of a command resource",
        ),
    ),
    KernelRule(
        "mlx5_command_failed",
        K.COMMAND_FAILED,
        _WARNING,
        MLX5,
        " failed, status ",
        r"\b(?!ACCESS_REG\()[A-Z][A-Z0-9_]+\(0x[0-9a-f]+\) op_mod\(0x[0-9a-f]+\) failed, "
        r"status ",
        "The firmware refused a command.",
        (
            _MLX5 + "mlx5_cmd_out_err:809:(pid 77): CREATE_MKEY(0x200) op_mod(0x0) "
            "failed, status bad resource(0x5), syndrome (0xd452e2), err(-22)",
        ),
        (
            _MLX5 + "mlx5_cmd_out_err:809:(pid 3101): ACCESS_REG(0x805) op_mod(0x1) "
            "failed, status bad parameter(0x3), syndrome (0x305684), err(-22)",
        ),
    ),
    KernelRule(
        "mlx5_firmware_pages",
        K.FIRMWARE_PAGES,
        _WARNING,
        MLX5,
        "pages",
        r"\b(?:give_pages|reclaim_pages|give_pages_notify\w*)\b.*\b(?:err|fail)"
        r"|FW pages counter is \d+ after reclaiming all pages"
        r"|failed reclaiming pages",
        "Memory for the firmware could not be given or taken back.",
        (
            _MLX5 + "give_pages:366:(pid 904): func_id 0x0, npages 4, err -11",
            _MLX5 + "mlx5_reclaim_startup_pages:758:(pid 1): FW pages counter is 12 "
            "after reclaiming all pages",
        ),
        (_MLX5 + "mlx5_satisfy_startup_pages:595:(pid 1): requested 4 boot pages",),
    ),
    KernelRule(
        "mlx5_firmware_start",
        K.FIRMWARE_FATAL,
        _CRITICAL,
        MLX5,
        "",
        r"Firmware over \d+ MS in (?:pre-)?initializing state, aborting"
        r"|mlx5_load_one failed with error code",
        "The firmware did not start, so the device is not there.",
        (
            _MLX5 + "mlx5_function_enable:1000:(pid 1): Firmware over 120000 MS in "
            "pre-initializing state, aborting",
            _MLX5 + "probe_one:1686:(pid 1): mlx5_load_one failed with error code -110",
        ),
        (_MLX5 + "firmware version: 28.41.1000",),
    ),
    KernelRule(
        "bnxt_firmware",
        K.FIRMWARE_STUCK,
        _CRITICAL,
        BROADCOM,
        "",
        r"Firmware not responding, status: 0x[0-9a-f]+"
        r"|Firmware (?:fatal|non-fatal) error|Detected firmware fatal condition"
        r"|FW [Ss]tall|rcfw_timedout",
        "The firmware does not answer, or says that it failed.",
        (
            "bnxt_en 0000:1a:00.0 eth3: Firmware not responding, status: 0x8000",
            "bnxt_en 0000:1a:00.0 eth3: Detected firmware fatal condition, resetting",
        ),
        ("bnxt_en 0000:1a:00.0 eth3: Firmware reset done",),
    ),
    KernelRule(
        "bnxt_command_timeout",
        K.COMMAND_TIMEOUT,
        _ERROR,
        BROADCOM,
        "",
        r"Error \(timeout: \d+\) msg \{0x[0-9a-f]+ 0x[0-9a-f]+\}"
        r"|cmdq\[0x[0-9a-f]+\]=0x[0-9a-f]+ timedout"
        r"|Resp cmpl intr err msg: 0x[0-9a-f]+",
        "The firmware did not answer a command.",
        (
            "bnxt_en 0000:1a:00.0 eth3: Error (timeout: 500015) msg {0x23 0x1e} len:0",
            "bnxt_en 0000:1a:00.0: QPLIB: cmdq[0x17]=0x11 timedout (20000)msec",
        ),
        (
            "bnxt_en 0000:1a:00.0 eth3: hwrm req_type 0x23 seq id 0x1e4 error 0x2",
            "bnxt_en 0000:1a:00.0: QPLIB: cmdq[0x17]=0x11 status 0x5",
        ),
    ),
    KernelRule(
        "bnxt_command_failed",
        K.COMMAND_FAILED,
        _WARNING,
        BROADCOM,
        "cmdq[",
        r"cmdq\[0x[0-9a-f]+\]=0x[0-9a-f]+ status 0x[0-9a-f]+",
        "The firmware answered a command, and refused it.",
        (
            "bnxt_en 0000:1a:00.0: QPLIB: cmdq[0x17]=0x11 status 0x5",
            "bnxt_en 0000:1a:00.0: cmdq[0x2a]=0x9 status 0x1",
        ),
        ("bnxt_en 0000:1a:00.0: QPLIB: cmdq[0x17]=0x11 timedout (20000)msec",),
    ),
    KernelRule(
        "irdma_command_error",
        K.COMMAND_FAILED,
        _ERROR,
        INTEL,
        " Error][op_code=",
        r"\[[\w ]{1,40} Error\]\[op_code=\d+\] status=-?\d+ waiting=\d completion_err=",
        "The device did not carry out a command of the driver.",
        (
            ("infiniband rocep49s0f0: [Create QP Cmd Error][op_code=4] status=-5 "
            "waiting=1 completion_err=1 maj=0xffff min=0x8002"),
        ),
        ("infiniband rocep49s0f0: [op_code=4] status=0",),
    ),
    KernelRule(
        "irdma_queue_fault",
        K.QUEUE_FAULT,
        _WARNING,
        INTEL,
        "abnormal ae_id",
        r"abnormal ae_id = 0x[0-9a-f]+ bool qp=\d qp_id = \d+",
        "A queue pair ended with an error of its own.",
        (
            ("infiniband rocep49s0f0: abnormal ae_id = 0x503 bool qp=1 qp_id = 77, "
            "ae_src=5"),
        ),
        ("infiniband rocep49s0f0: ae_id = 0x503",),
    ),
    KernelRule(
        "ice_reset",
        K.RECOVERY_STARTED,
        _ERROR,
        ("ice",),
        " requested",
        r"^(?:GLOBR|CORER|EMPR) requested",
        "The driver resets the device.",
        ("ice 0000:31:00.0: EMPR requested: reset by firmware",),
        ("ice 0000:31:00.0: reset statistics",),
    ),
    KernelRule(
        "ice_reset_failed",
        K.FIRMWARE_FATAL,
        _CRITICAL,
        ("ice",),
        "ailed",
        r"^(?:Reset failed|Rebuild failed, unload and reload driver|PF VSI rebuild failed)",
        "The device did not come back from a reset; its driver must be loaded again.",
        ("ice 0000:31:00.0: Rebuild failed, unload and reload driver (reset)",),
        ("ice 0000:31:00.0: EMPR requested: reset by firmware",),
    ),
    KernelRule(
        "irdma_reset",
        K.RECOVERY_STARTED,
        _ERROR,
        INTEL,
        "Requesting a reset",
        r"^Requesting a reset",
        "A command of the driver was not answered, so it has the device reset.",
        (
            "infiniband rocep49s0f0: Requesting a reset",
            "ice 0000:31:00.0 rocep49s0f0: Requesting a reset",
        ),
        ("infiniband rocep49s0f0: [op_code=4] status=0",),
    ),
    KernelRule(
        "efa_command_timeout",
        K.COMMAND_TIMEOUT,
        _ERROR,
        EFA,
        "admin cmd",
        r"The device (?:didn't send any completion|sent a completion but the driver "
        r"didn't receive any MSI-X interrupt) for admin cmd ",
        "The device did not answer an administrative command.",
        (
            ("infiniband rdmap0s6: The device didn't send any completion for admin cmd "
            "CREATE_QP(1) status 0 (ctx 0x00000000f3, sq producer: 4, sq consumer: 3, cq "
            "consumer: 3)"),
            ("efa 0000:00:06.0 efa_0: The device sent a completion but the driver didn't "
            "receive any MSI-X interrupt for admin cmd REG_MR(7) status 1 (id: 3, sq "
            "producer: 9, sq consumer: 8, cq consumer: 8)"),
        ),
        ("infiniband rdmap0s6: Failed to process command REG_MR (opcode 7) err -12",),
    ),
    KernelRule(
        "efa_command_failed",
        K.COMMAND_FAILED,
        _WARNING,
        EFA,
        "Failed to process command",
        r"Failed to process command \w+ \(opcode \d+\)",
        "The device refused an administrative command.",
        (
            ("infiniband rdmap0s6: Failed to process command REG_MR (opcode 7) "
            "comp_status 2 err -12"),
        ),
        ("infiniband rdmap0s6: Failed to process",),
    ),
    KernelRule(
        "ionic_firmware_stuck",
        K.FIRMWARE_STUCK,
        _CRITICAL,
        IONIC,
        "",
        r"FW heartbeat stalled at -?\d+|FW Down: Stopping LIFs",
        "The firmware's heart stopped.",
        (
            "ionic 0000:24:00.0: FW heartbeat stalled at 1342169688",
            "ionic 0000:24:00.0: FW Down: Stopping LIFs",
        ),
        ("ionic 0000:24:00.0: FW heartbeat restored at 1342169690",),
    ),
    KernelRule(
        "ionic_recovered",
        K.RECOVERED,
        _INFO,
        IONIC,
        "",
        r"FW heartbeat restored at -?\d+|FW Up: restarting LIFs",
        "The device works again.",
        (
            "ionic 0000:24:00.0: FW heartbeat restored at 1342169690",
            "ionic 0000:24:00.0: FW Up: restarting LIFs",
        ),
        ("ionic 0000:24:00.0: FW heartbeat stalled at 1342169688",),
    ),
    KernelRule(
        "ionic_command_timeout",
        K.COMMAND_TIMEOUT,
        _ERROR,
        IONIC,
        "DEVCMD ",
        r"DEVCMD \S+ \(\d+\) (?:timeout after|failed: .{0,40}timeout)",
        "The firmware did not answer a command.",
        ("ionic 0000:24:00.0: DEVCMD IONIC_CMD_NOP (0) timeout after 5 secs",),
        ("ionic 0000:24:00.0: DEVCMD IONIC_CMD_NOP (0) done",),
    ),
    KernelRule(
        "transmit_timeout",
        K.TRANSMIT_TIMEOUT,
        _ERROR,
        (),
        "transmit queue ",
        r"NETDEV WATCHDOG: (?:(?P<netdev>[^\s:()]{1,15}) \(\w+\): )?(?:CPU: \d+: )?"
        r"transmit queue \d+ timed out",
        "A queue of a network device did not send for seconds.",
        (
            "NETDEV WATCHDOG: eth3 (mlx5_core): transmit queue 3 timed out",
            ("mlx5_core 0000:1a:00.0 eth3: NETDEV WATCHDOG: CPU: 3: transmit queue 3 "
            "timed out 5032 ms"),
        ),
        ("NETDEV WATCHDOG: eth3", "transmit queue 3 timed out"),
    ),
    # -- PCIe ----------------------------------------------------------------------
    KernelRule(
        "aer_corrected",
        K.PCIE_CORRECTED,
        _INFO,
        (),
        "PCIe Bus Error: ",
        r"PCIe Bus Error: severity=Correct(?:ed|able), type=",
        "The PCIe link repaired a damaged packet.",
        (
            _MLX5 + "PCIe Bus Error: severity=Correctable, type=Physical Layer, "
            "(Receiver ID)",
            ("pcieport 0000:16:01.0: AER: PCIe Bus Error: severity=Corrected, type=Data "
            "Link Layer, (Transmitter ID)"),
        ),
        (
            _MLX5 + "PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction "
            "Layer, (Requester ID)",
        ),
    ),
    KernelRule(
        "aer_nonfatal",
        K.PCIE_NONFATAL,
        _ERROR,
        (),
        "PCIe Bus Error: ",
        r"PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Non-Fatal\), type=",
        "A PCIe packet was lost; the link goes on.",
        (
            _MLX5 + "PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction "
            "Layer, (Requester ID)",
        ),
        (
            _MLX5 + "PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction "
            "Layer, (Requester ID)",
        ),
    ),
    KernelRule(
        "aer_fatal",
        K.PCIE_FATAL,
        _CRITICAL,
        (),
        "PCIe Bus Error: ",
        r"PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Fatal\), type=",
        "The PCIe link can be trusted no more.",
        (
            _MLX5 + "PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction "
            "Layer, (Requester ID)",
            _MLX5 + "AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Inaccessible, "
            "(Unregistered Agent ID)",
        ),
        (
            _MLX5 + "PCIe Bus Error: severity=Correctable, type=Physical Layer, "
            "(Receiver ID)",
        ),
    ),
    KernelRule(
        "aer_message",
        K.PCIE_MESSAGE,
        _INFO,
        ROOT,
        "AER: ",
        r"AER: (?:Multiple )?(?:Correct|Uncorrect)(?:ed|able)(?: \((?:Non-)?Fatal\))? "
        rf"error (?:message )?received(?: from|:) (?P<source>{PCI_ADDRESS})",
        "A root port tells which function reported an error; the error follows.",
        (
            ("pcieport 0000:16:01.0: AER: Correctable error message received from "
            "0000:1a:00.0"),
            ("pcieport 0000:16:01.0: AER: Multiple Uncorrected (Non-Fatal) error "
            "received: 0000:1a:00.0"),
        ),
        (
            "pcieport : AER: " + "A" * 40,
            "pcieport 0000:16:01.0: AER: Corrected error received: id=00e0",
        ),
    ),
    KernelRule(
        "aer_firmware_status",
        K.PCIE_MESSAGE,
        _INFO,
        (),
        "aer_status: 0x",
        r"^(?:AER: )?aer_status: 0x(?P<bits>[0-9a-f]{8}), aer_mask: "
        r"0x(?P<mask>[0-9a-f]{8})",
        "The platform's firmware, which has AER to itself, reports an error; it was "
        "repaired unless a line on its severity follows.",
        (
            _MLX5 + "AER: aer_status: 0x00000001, aer_mask: 0x00002000",
            _MLX5 + "aer_status: 0x00040000, aer_mask: 0x00000000",
        ),
        (
            _MLX5 + "AER: aer_layer=Physical Layer, aer_agent=Receiver ID",
            "{1}[Hardware Error]:   aer_status: 0x00000001, aer_mask: 0x00002000",
        ),
    ),
    KernelRule(
        "aer_firmware_uncorrected",
        K.PCIE_NONFATAL,
        _ERROR,
        (),
        "aer_uncor_severity: 0x",
        r"^(?:AER: )?aer_uncor_severity: 0x(?P<bits>[0-9a-f]{8})",
        "What the platform's firmware reported was not repaired; fatal if its bit is set "
        "here.",
        (_MLX5 + "AER: aer_uncor_severity: 0x00062010",),
        ("{1}[Hardware Error]:   aer_uncor_severity: 0x00062010",),
    ),
    KernelRule(
        "aer_recovery_failed",
        K.PCIE_NONFATAL,
        _ERROR,
        (),
        "evice recovery failed",
        r"^AER: [Dd]evice recovery failed",
        "A device below the port was not brought back after an error: its driver could "
        "not, or has no means to.",
        (
            "pcieport 0000:16:01.0: AER: device recovery failed",
            _MLX5 + "AER: Device recovery failed",
        ),
        ("pcieport 0000:16:01.0: AER: device recovery successful",),
    ),
    KernelRule(
        "pcie_limited",
        K.PCIE_LIMITED,
        _WARNING,
        (),
        "available PCIe bandwidth, limited by",
        r"^(?P<gbps>\d{1,5}\.\d{1,3}) Gb/s available PCIe bandwidth, limited by .{1,40} "
        rf"link at (?P<bridge>{PCI_ADDRESS}) \(capable of (?P<capable>\d{{1,5}}\.\d{{1,3}})"
        r" Gb/s",
        "The device trained below what it can: slot, riser or link.",
        (
            _MLX5 + "252.048 Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x8 "
            "link at 0000:19:01.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)",
            ("bnxt_en 0000:1a:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 "
            "GT/s PCIe x8 link at 0000:16:01.0 (capable of 126.016 Gb/s with 16.0 GT/s "
            "PCIe x8 link)"),
        ),
        (
            _MLX5 + "504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
        ),
    ),
    KernelRule(
        "dpc_contained",
        K.DEVICE_LOST,
        _CRITICAL,
        ROOT,
        "DPC: containment event",
        r"DPC: containment event, status:0x[0-9a-f]+",
        "A root port cut off what lies below it after an error.",
        (
            "pcieport 0000:16:01.0: DPC: containment event, status:0x1f01 source:0x0000",
        ),
        ("pcieport 0000:16:01.0: DPC: enabled with IRQ 31",),
    ),
    KernelRule(
        "slot_down",
        K.SLOT_DOWN,
        _WARNING,
        ROOT,
        "pciehp: Slot(",
        r"pciehp: Slot\([\w-]{1,16}\): (?:Link Down|Card not present)",
        "A slot lost its card: by an error, a reset of its firmware, or a hand.",
        (
            "pcieport 0000:16:01.0: pciehp: Slot(21): Link Down",
            "pcieport 0000:16:01.0: pciehp: Slot(0-1): Card not present",
        ),
        ("pcieport 0000:16:01.0: pciehp: Slot(21): Link Up",),
    ),
    KernelRule(
        "device_inaccessible",
        K.DEVICE_LOST,
        _CRITICAL,
        (),
        "inaccessible",
        r"(?:[Uu]nable to|[Cc]an't) change power state from \w+ to D0"
        r"(?:,| \()(?: )?(?:device|config space) inaccessible",
        "The function does not answer on the bus.",
        (
            _MLX5 + "Unable to change power state from D3cold to D0, device inaccessible",
            _MLX5 + "can't change power state from D3cold to D0 (config space "
            "inaccessible)",
        ),
        (_MLX5 + "Unable to change power state from D3cold to D0",),
    ),
)  # fmt: skip
