"""Value grammars of sysfs files, in every form that was seen in the field."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.parse import sysfs
from fabricmon.parse.words import LinkLayer, PhysState, PortState, Rate

MISSPELT = "PORT_CONFIGURATION TRAINNING (4)"  # codespell:ignore


class TestState:
    """`parse_state` takes the word and falls back on the number."""

    @pytest.mark.parametrize(
        ("text", "state"),
        [
            ("4: ACTIVE\n", PortState.ACTIVE),
            ("4: ACTIVE ()", PortState.ACTIVE),
            ("DOWN", PortState.DOWN),
            ("0: NOP", PortState.NOP),
            ("2: INIT", PortState.INIT),
            ("3: ARMED", PortState.ARMED),
            ("5: ACTIVE_DEFER", PortState.ACTIVE_DEFER),
            ("PORT_ACTIVE (4)", PortState.ACTIVE),
            ("Initializing", PortState.INIT),
            ("Initialize", PortState.INIT),
        ],
    )
    def test_reads_every_form(self, text: str, state: PortState) -> None:
        """Sysfs, ibstat, ibv_devinfo and iblinkinfo spell it in their own ways."""
        assert sysfs.parse_state(text) is state

    def test_an_unknown_word_leaves_the_number(self) -> None:
        """A translated or new word does not hide a known number."""
        assert sysfs.parse_state("4: AKTIV") is PortState.ACTIVE

    @pytest.mark.parametrize("text", ["", "???", "unknown", "9: NEW", ":"])
    def test_what_is_not_known_is_none(self, text: str) -> None:
        """No state is guessed."""
        assert sysfs.parse_state(text) is None

    def test_takes_bytes_as_read(self) -> None:
        """The content of a file needs no decoding first."""
        assert sysfs.parse_state(b"1: DOWN\n") is PortState.DOWN


class TestPhysState:
    """`parse_phys_state` does the same for the physical state."""

    @pytest.mark.parametrize(
        ("text", "state"),
        [
            ("5: LinkUp\n", PhysState.LINK_UP),
            ("5: LINK_UP", PhysState.LINK_UP),
            ("LINK_UP (5)", PhysState.LINK_UP),
            ("1: Sleep", PhysState.SLEEP),
            ("2: Polling", PhysState.POLLING),
            ("3: Disabled", PhysState.DISABLED),
            ("4: PortConfigurationTraining", PhysState.TRAINING),
            (MISSPELT, PhysState.TRAINING),
            ("6: LinkErrorRecovery", PhysState.RECOVERY),
            ("LINK_ERROR_RECOVER", PhysState.RECOVERY),
            ("7: Phy Test", PhysState.TEST),
        ],
    )
    def test_reads_every_form(self, text: str, state: PhysState) -> None:
        """Blanks, underscores and one misspelling included."""
        assert sysfs.parse_phys_state(text) is state

    @pytest.mark.parametrize("text", ["<unknown>", "NOP", "", "4: ACTIVE"])
    def test_what_does_not_say_is_none(self, text: str) -> None:
        """A word of the logical state beside a number proves neither."""
        assert sysfs.parse_phys_state(text) is None


class TestRate:
    """`parse_rate` keeps apart rate, lanes and speed."""

    @pytest.mark.parametrize(
        ("text", "rate"),
        [
            ("400 Gb/sec (4X NDR)\n", Rate(400, 4, "NDR")),
            ("800 Gb/sec (8X NDR)", Rate(800, 8, "NDR")),
            ("800 Gb/sec (4X XDR)", Rate(800, 4, "XDR")),
            ("2.5 Gb/sec (1X SDR)", Rate(2.5, 1, "SDR")),
            ("10 Gb/sec (4X)", Rate(10, 4, None)),
            ("40 Gb/sec (4X FDR10)", Rate(40, 4, "FDR10")),
            ("200 Gb/sec (2X NDR)", Rate(200, 2, "NDR")),
            ("400 Gb/sec", Rate(400, None, None)),
            ("0 GB/sec", Rate(0, None, None)),
            ("40 (FDR10)", Rate(40, None, "FDR10")),
            ("2.5", Rate(2.5, None, None)),
        ],
    )
    def test_reads_every_form(self, text: str, rate: Rate) -> None:
        """The number of lanes is never derived from the rate."""
        assert sysfs.parse_rate(text) == rate

    @pytest.mark.parametrize("text", ["", "unknown", "10000 Mb/sec", "-1 Gb/sec"])
    def test_what_is_no_rate_is_none(self, text: str) -> None:
        """Another unit is not taken for Gb/s."""
        assert sysfs.parse_rate(text) == Rate()


class TestLid:
    """`parse_lid` reads both notations."""

    @pytest.mark.parametrize(
        ("text", "lid"), [("0x1f4\n", 500), ("500", 500), ("0", 0)]
    )
    def test_reads_both_notations(self, text: str, lid: int) -> None:
        """Sysfs is hexadecimal, ibstat decimal."""
        assert sysfs.parse_lid(text) == lid

    @pytest.mark.parametrize("text", ["0xffff", "65535", "70000", "", "unknown"])
    def test_no_lid_is_none(self, text: str) -> None:
        """65535 stands for a port without a LID and is never exported."""
        assert sysfs.parse_lid(text) is None


class TestGuid:
    """`parse_guid` gives one spelling."""

    @pytest.mark.parametrize(
        "text",
        [
            "0c42:a103:0002:0011",
            "0x0c42a10300020011",
            "0xC42A10300020011",
            "0c42:a103:2:11\n",
        ],
    )
    def test_every_spelling_gives_the_same(self, text: str) -> None:
        """Colons, capitals and missing zeros do not matter."""
        assert sysfs.parse_guid(text) == "0x0c42a10300020011"

    def test_zeros_are_a_guid(self) -> None:
        """Ethernet ports and unbound virtual functions have it: it is no absence."""
        assert sysfs.parse_guid("0000:0000:0000:0000") == "0x" + 16 * "0"

    @pytest.mark.parametrize("text", ["", "0x", "a:b", "1:2:3:4:5", "g", "1" * 17])
    def test_anything_else_is_none(self, text: str) -> None:
        """Half a GUID is none."""
        assert sysfs.parse_guid(text) is None


class TestLinkLayer:
    """`parse_link_layer` knows the three words."""

    def test_blank_lines_do_not_matter(self) -> None:
        """One driver was seen to print extra line feeds."""
        assert sysfs.parse_link_layer("\nInfiniBand\n\n") is LinkLayer.INFINIBAND

    def test_unknown_is_a_word_and_not_an_absence(self) -> None:
        """EFA says Unknown."""
        assert sysfs.parse_link_layer("Unknown") is LinkLayer.UNKNOWN

    def test_nothing_is_none(self) -> None:
        """An empty file says nothing."""
        assert sysfs.parse_link_layer("") is None


class TestCounter:
    """`parse_counter` gives a number or the text instead of it."""

    def test_reads_a_number_with_its_line_feed(self) -> None:
        """As sysfs prints it."""
        assert sysfs.parse_counter(b"18446744073709551615\n") == 2**64 - 1

    @pytest.mark.parametrize(
        ("raw", "reason"),
        [(b"N/A (no PMA)\n", "N/A (no PMA)"), (b"", "empty"), (b"\n", "empty")],
    )
    def test_text_in_place_of_a_number_is_the_reason(
        self, raw: bytes, reason: str
    ) -> None:
        """It is never taken for 0."""
        assert sysfs.parse_counter(raw) == reason

    @pytest.mark.parametrize("raw", [b"18446744073709551616", b"1" * 5000, b"-1"])
    def test_what_no_counter_can_hold_is_a_reason(self, raw: bytes) -> None:
        """Numbers beyond 64 bits and negative ones are no values."""
        assert isinstance(sysfs.parse_counter(raw), str)

    def test_a_reason_is_short(self) -> None:
        """A file full of text does not end up in an exported label."""
        assert len(str(sysfs.parse_counter(b"x" * 10_000))) == sysfs.MAX_REASON


class TestPci:
    """PCIe speed, width and error tables."""

    def test_reads_a_speed(self) -> None:
        """Old kernels leave out the last word."""
        assert sysfs.parse_pci_speed("16.0 GT/s PCIe\n") == 16.0
        assert sysfs.parse_pci_speed("8 GT/s") == 8.0

    @pytest.mark.parametrize("text", ["Unknown", "Unknown speed", "", "16.0"])
    def test_an_unknown_speed_is_none(self, text: str) -> None:
        """A device that fell off the bus says Unknown."""
        assert sysfs.parse_pci_speed(text) is None

    @pytest.mark.parametrize("text", ["0", "63", "255", "", "x16"])
    def test_an_impossible_width_is_none(self, text: str) -> None:
        """All ones is what a dead device answers."""
        assert sysfs.parse_pci_width(text) is None

    def test_reads_a_width(self) -> None:
        """The number of lanes."""
        assert sysfs.parse_pci_width("16\n") == 16

    def test_reads_an_error_table(self) -> None:
        """The total is kept apart from the kinds."""
        table = sysfs.parse_aer("RxErr 3\nBadTLP 0\nTOTAL_ERR_COR 3\n")
        names = [(count.name, count.value) for count in table.counts]
        assert names == [("RxErr", 3), ("BadTLP", 0)]
        assert table.total == 3

    def test_a_table_without_total_has_none(self) -> None:
        """It is not summed up: that would hide a cut file."""
        assert sysfs.parse_aer("RxErr 3\n").total is None


class TestUptime:
    """`parse_uptime` reads the first number."""

    def test_reads_the_seconds_since_boot(self) -> None:
        """The second number is idle time."""
        assert sysfs.parse_uptime("8640000.50 123.00\n") == 8640000.5

    @pytest.mark.parametrize("text", ["", "x", "-1 2"])
    def test_anything_else_is_none(self, text: str) -> None:
        """No boot time is made up."""
        assert sysfs.parse_uptime(text) is None


@given(st.binary(max_size=200))
def test_no_grammar_raises_on_any_bytes(raw: bytes) -> None:
    """A broken driver costs its own value and nothing else."""
    sysfs.parse_state(raw)
    sysfs.parse_phys_state(raw)
    sysfs.parse_rate(raw)
    sysfs.parse_lid(raw)
    sysfs.parse_sm_lid(raw)
    sysfs.parse_guid(raw)
    sysfs.parse_link_layer(raw)
    sysfs.parse_counter(raw)
    sysfs.parse_pci_speed(raw)
    sysfs.parse_pci_width(raw)
    sysfs.parse_aer(raw)
    sysfs.parse_uptime(raw)


@given(st.integers(min_value=0, max_value=2**64 - 1))
def test_every_counter_value_is_read_exactly(value: int) -> None:
    """No value passes through a float."""
    assert sysfs.parse_counter(b"%d\n" % value) == value
