"""Lines of the kernel's log, taken apart and recognised."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.parse.kernel_event import KernelKind
from fabricmon.parse.kmsg import MAX_LINE, MAX_TEXT, concerns, recognise
from fabricmon.parse.kmsg_rules import RULES, KernelRule

EXAMPLES = [(rule, line) for rule in RULES for line in rule.examples]
NEAR = [(rule, line) for rule in RULES for line in rule.near_misses]


class TestTable:
    def test_ids_are_unique(self) -> None:
        """Findings name the row."""
        ids = [rule.id for rule in RULES]
        assert len(ids) == len(set(ids))

    def test_every_row_has_examples_of_both_sorts(self) -> None:
        """A row without a near miss may match anything."""
        assert all(rule.examples and rule.near_misses for rule in RULES)

    @pytest.mark.parametrize(("rule", "line"), EXAMPLES)
    def test_example(self, rule: KernelRule, line: str) -> None:
        """A wording of the kernel is known by its own row, and leaves the node's door."""
        event = recognise(line, 7.0)
        assert event is not None
        assert (event.rule, event.kind, event.at) == (rule.id, rule.kind, 7.0)
        assert concerns(line.encode())

    @pytest.mark.parametrize(("rule", "line"), NEAR)
    def test_near_miss(self, rule: KernelRule, line: str) -> None:
        """What is nearly the same is not it."""
        event = recognise(line, 0.0)
        assert event is None or event.rule != rule.id

    def test_patterns_are_quick_on_hostile_lines(self) -> None:
        """No text makes a pattern try for long."""
        pieces = ("A(0x", "give_pages ", "Enter ", "PCIe Bus Error: ", "[ Error][op")
        texts = [f"mlx5_core 0000:1a:00.0: {each * 500}"[:MAX_LINE] for each in pieces]
        begun = time.process_time()
        for rule in RULES:
            for text in texts:
                re.search(rule.pattern, text)
        assert time.process_time() - begun < 0.5


class TestFields:
    def test_address_and_network_device(self) -> None:
        """The head says what a line is about."""
        event = recognise("mlx5_core 0000:1a:00.1 eth3: Link down", 0)
        assert event is not None
        assert (event.address, event.netdev) == ("0000:1a:00.1", "eth3")

    def test_rdma_device(self) -> None:
        """Drivers of the RDMA side name only their own device."""
        line = (
            "infiniband rdmap0s6: Failed to process command REG_MR (opcode 7) "
            "comp_status 2 err -12"
        )
        event = recognise(line, 0)
        assert event is not None
        assert (event.address, event.device) == (None, "rdmap0s6")

    def test_power(self) -> None:
        """How much the slot gives."""
        line = (
            "mlx5_core 0000:1a:00.0: mlx5_pcie_event:301:(pid 1): Detected "
            "insufficient power on the PCIe slot (27W)."
        )
        event = recognise(line, 0)
        assert event is not None
        assert event.watts == 27

    def test_bandwidth(self) -> None:
        """What there is, what there could be, and which bridge is in the way."""
        rule = next(rule for rule in RULES if rule.kind is KernelKind.PCIE_LIMITED)
        event = recognise(rule.examples[0], 0)
        assert event is not None
        assert (event.gbps, event.capable_gbps) == (252.048, 504.112)
        assert event.limited_by == "0000:19:01.0"

    def test_root_port_names_the_source(self) -> None:
        """The error is that of the function, not of the port that tells of it."""
        rule = next(rule for rule in RULES if rule.kind is KernelKind.PCIE_MESSAGE)
        event = recognise(rule.examples[0], 0)
        assert event is not None
        assert event.address == "0000:1a:00.0"


class TestHostility:
    @pytest.mark.parametrize(
        "line",
        [
            "mlx5_core ../../etc/passwd: Port module event: module 0, Cable unplugged",
            'mlx5_core 0000:ff:1f.7 {device="x",y="\\": Link down',
            "pcieport : AER: " + "A" * 4000,
            "systemd[1]: mlx5_core 0000:1a:00.0: Link down",
            "",
        ],
    )
    def test_forged_heads(self, line: str) -> None:
        """A line that names no device, or names it in the wrong place, says nothing."""
        event = recognise(line, 0)
        assert event is None or event.address == "0000:ff:1f.7"

    def test_control_characters_go(self) -> None:
        """What is kept of a line can be printed, and is short."""
        line = "mlx5_core 0000:1a:00.0 e\x1b[2J: Link down" + "x" * 5000
        event = recognise(line.replace("e\x1b[2J", "eth3") + "\x1b[2J", 0)
        assert event is None or "\x1b" not in event.text
        hot = "mlx5_core 0000:1a:00.0: High temperature on sensors with bit set \x1b[2J"
        found = recognise(hot + "0" * 5000, 0)
        assert found is not None
        assert found.text.isprintable()
        assert len(found.text) == MAX_TEXT

    @given(st.text(max_size=2000))
    def test_any_text(self, text: str) -> None:
        """Nothing raises, and nothing is invented of noise."""
        assert recognise(text, 0) is None

    @given(st.sampled_from([line for _, line in EXAMPLES]), st.integers(0, 300))
    def test_cut_lines(self, line: str, length: int) -> None:
        """A line that was cut is known as what it is, or not at all."""
        whole, cut = recognise(line, 0), recognise(line[:length], 0)
        assert whole is not None
        # A link that is down is told before its line is over.
        assert cut is None or cut.kind is whole.kind

    @pytest.mark.parametrize(
        "line",
        [
            b"sshd[11]: Accepted password for root",
            b"nvme nvme0: I/O timeout",
            b"audit: type=1400 apparmor=DENIED",
            b"mlx5_core is a word here",
            b"x" * 2000 + b" AER: ",
        ],
    )
    def test_what_is_nobodys_business(self, line: bytes) -> None:
        """Lines of others never leave the door to the node."""
        assert not concerns(line)
