import pytest

from fabricmon.config import Config, Devices, Expectation, Profile
from fabricmon.expectations import Expectations, Expected, is_watched
from fabricmon.model import PortId, PortPlace, Role, Topology

PORT = PortId("mlx5_0", 1)
ADDRESS = "0000:1a:00.0"


def expectation(*ports: str, **said: object) -> Expectation:
    """Return an entry of the configuration."""
    return Expectation(ports=ports, **said)  # type: ignore[arg-type]


class TestOrder:
    def test_nothing_is_expected_by_default(self) -> None:
        """Without configuration nothing is made up."""
        assert Expectations(Config()).of(PORT, ADDRESS) == Expected()

    @pytest.mark.parametrize("pattern", ["mlx5_0/1", "mlx5_*/1", "0000:1a:*", "*"])
    def test_patterns_on_names_and_addresses(self, pattern: str) -> None:
        """A port is named by device and number, or by its PCI address."""
        config = Config(expect=(expectation(pattern, up=False),))
        assert Expectations(config).of(PORT, ADDRESS).up is False

    def test_other_ports_are_not_meant(self) -> None:
        """A pattern that does not fit says nothing."""
        config = Config(expect=(expectation("mlx5_1/1", "0000:1b:*", up=False),))
        assert Expectations(config).of(PORT, ADDRESS).up is None
        assert Expectations(config).of(PORT, None).up is None

    def test_first_match_wins(self) -> None:
        """The first entry that fits is the only one."""
        entries = (expectation("mlx5_0/*", role="storage"), expectation("*", rail=7))
        found = Expectations(Config(expect=entries)).of(PORT, ADDRESS)
        assert (found.role, found.rail) == (Role.STORAGE, None)

    def test_node_then_profile_then_topology(self) -> None:
        """Each fills in what the one before it leaves open."""
        profile = Profile(
            product="DGX*", ports=(expectation("*", role="compute", rate_gbps=400.0),)
        )
        config = Config(
            profiles=(profile,), expect=(expectation("*", rate_gbps=200.0),)
        )
        expectations = Expectations(config)
        assert expectations.take_product("DGXH100") is True
        assert expectations.take_product("DGXH100") is False
        place = PortPlace("mlx5_0/1", leaf="leaf-3", rail="A", role=Role.STORAGE)
        expectations.take_topology(Topology(ports=(place,)))
        assert expectations.of(PORT, ADDRESS) == Expected(
            rate_gbps=200.0, role=Role.COMPUTE, rail="A", leaf="leaf-3"
        )

    def test_rail_zero_is_a_rail(self) -> None:
        """Rail 0 and `up: false` are said, not missing."""
        profile = Profile(product="*", ports=(expectation("*", rail=3, up=True),))
        config = Config(
            profile="X",
            profiles=(profile,),
            expect=(expectation("*", rail=0, up=False),),
        )
        found = Expectations(config).of(PORT, ADDRESS)
        assert (found.rail, found.up) == (0, False)

    def test_configured_product_wins(self) -> None:
        """Firmware that does not know its own name can be told it."""
        profile = Profile(product="HGX", ports=(expectation("*", up=True),))
        expectations = Expectations(Config(profile="HGX", profiles=(profile,)))
        expectations.take_product("To be filled by O.E.M.")
        assert expectations.of(PORT, ADDRESS).up is True


@pytest.mark.parametrize(
    ("name", "watched"), [("mlx5_0", True), ("mlx5_9", False), ("rxe0", False)]
)
def test_watched(name: str, watched: bool) -> None:  # noqa: FBT001
    """A device is watched if it is included and not excluded."""
    devices = Devices(include=("mlx5_*",), exclude=("mlx5_9",))
    assert is_watched(name, devices) is watched
