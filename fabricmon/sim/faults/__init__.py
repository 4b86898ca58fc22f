"""The catalogue of faults and hard negatives, by family; see ``docs/scenarios.md``.

A class turns an `Injection` into effects on the fleet and into truth. The model that
runs the effects knows none of the classes.
"""

from fabricmon.sim.faults.catalogue import FAULTS, class_of, make
from fabricmon.sim.faults.checks import check
from fabricmon.sim.faults.row import FaultClass, Group, Known, Parameter, Scaling

__all__ = [
    "FAULTS",
    "FaultClass",
    "Group",
    "Known",
    "Parameter",
    "Scaling",
    "check",
    "class_of",
    "make",
]
