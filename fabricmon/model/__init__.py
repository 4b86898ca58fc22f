"""The records that cross rooms: frozen, slotted, without behaviour beyond a lookup.

Times called ``at`` or ``now`` are monotonic seconds of the host; ``wall`` and
``onset`` are Unix seconds. A value that could not be read is None and has an
`Absence` that says why: absent, unreadable and zero stay three things.
"""

from fabricmon.model.findings import (
    Blindness,
    Evidence,
    Finding,
    Incident,
    IncidentState,
    Subject,
)
from fabricmon.model.polls import ErrnoCount, Health, Job, Outcome, Target
from fabricmon.model.ports import (
    Absence,
    GroupedPlan,
    Hca,
    HcaPort,
    PortId,
    PortInfo,
    PortPlace,
    ReadPlan,
    Topology,
)
from fabricmon.model.records import (
    NO_RATE,
    Accelerators,
    BootInfo,
    DeviceList,
    LinkEvent,
    LinkStatus,
    MaintenancePlan,
    MaintenanceWindow,
    NetdevStatus,
    PciLink,
    PciStatus,
    ReadFailure,
    Reading,
    Record,
    ToolReport,
)
from fabricmon.model.snapshot import PortSnapshot, Snapshot
from fabricmon.model.view import (
    Counters,
    Delta,
    MissingDevice,
    Move,
    OutageSummary,
    PortView,
    View,
)
from fabricmon.model.words import Action, Mark, Part, Role, Severity, Verdict

__all__ = [
    "NO_RATE",
    "Absence",
    "Accelerators",
    "Action",
    "Blindness",
    "BootInfo",
    "Counters",
    "Delta",
    "DeviceList",
    "ErrnoCount",
    "Evidence",
    "Finding",
    "GroupedPlan",
    "Hca",
    "HcaPort",
    "Health",
    "Incident",
    "IncidentState",
    "Job",
    "LinkEvent",
    "LinkStatus",
    "MaintenancePlan",
    "MaintenanceWindow",
    "Mark",
    "MissingDevice",
    "Move",
    "NetdevStatus",
    "OutageSummary",
    "Outcome",
    "Part",
    "PciLink",
    "PciStatus",
    "PortId",
    "PortInfo",
    "PortPlace",
    "PortSnapshot",
    "PortView",
    "ReadFailure",
    "ReadPlan",
    "Reading",
    "Record",
    "Role",
    "Severity",
    "Snapshot",
    "Subject",
    "Target",
    "ToolReport",
    "Topology",
    "Verdict",
    "View",
]
