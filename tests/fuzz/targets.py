"""All targets, by name."""

from __future__ import annotations

from tests.fuzz.of_files import FILE_TARGETS
from tests.fuzz.of_kernel import KERNEL_TARGETS
from tests.fuzz.of_network import NETWORK_TARGETS
from tests.fuzz.of_text import TEXT_TARGETS

TARGETS = (*TEXT_TARGETS, *KERNEL_TARGETS, *FILE_TARGETS, *NETWORK_TARGETS)
"""One row for each door."""

BY_NAME = {target.name: target for target in TARGETS}
