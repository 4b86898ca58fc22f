"""What tools say on stderr when they fail."""

import pytest

from fabricmon.parse.messages import MAX_FAILURES, failures
from tests.parse.cases import simulated


def test_a_device_is_named() -> None:
    """The device stands in quotes behind the word."""
    stderr = (
        "ibpanic: [40117] main: stat of IB device 'mlx5_8' failed: Input/output error"
    )
    (failure,) = failures("ibstat", "", stderr, 255)
    assert (failure.device, failure.errno) == ("mlx5_8", "EIO")


def test_a_umad_port_is_named() -> None:
    """The device stands in brackets before the port."""
    stderr = "ibwarn: [9] umad_open_port: can't open UMAD port (mlx5_0:1)"
    (failure,) = failures("perfquery", "", stderr, 255)
    assert (failure.device, failure.port) == ("mlx5_0", 1)


@pytest.mark.parametrize("name", ["(null)", "*", ""])
def test_what_is_no_name_is_no_device(name: str) -> None:
    """Neither a null pointer nor a glob that did not match is a device."""
    stdout = f"perfquery: iberror: failed: Failed to open '{name}' port '0'"
    (failure,) = failures("perfquery", stdout, "", 255)
    assert failure.device is None
    assert failure.port is None


def test_the_same_message_is_said_once() -> None:
    """The process number in front does not make it another one."""
    stderr = "ibwarn: [1] x: query failed\nibwarn: [2] x: query failed\n"
    assert len(failures("ibqueryerrors", "", stderr, 0)) == 1


def test_a_flood_is_cut_and_counted() -> None:
    """A subnet that does not answer does not make an endless document."""
    stderr = "".join(f"ibwarn: [1] x: query failed on node {i}\n" for i in range(1000))
    found = failures("ibqueryerrors", "", stderr, 0)
    assert len(found) == MAX_FAILURES + 1
    assert found[-1].message == f"and {1000 - MAX_FAILURES} messages more"


def test_a_provider_that_is_not_installed_is_no_failure() -> None:
    """The library says it for every vendor library that is missing."""
    stderr = "libibverbs: Warning: couldn't load driver 'libcxgb4-rdmav34.so': x\n"
    assert not failures("ibv_devinfo", "", stderr, 0)


def test_a_time_out_of_the_subnet_has_its_errno() -> None:
    """The errno text stands behind the last colon or semicolon."""
    found = failures("ibqueryerrors", "", simulated("madloss/ibqueryerrors.err"), 0)
    assert all(failure.device is None for failure in found)
    assert found


def test_words_on_stdout_are_data() -> None:
    """Only lines that begin like a message are one."""
    assert not failures("ethtool", "rx_failed_packets: 5\nrx_errors: 3\n", "", 0)


def test_a_status_that_is_normal_for_the_tool_is_no_failure() -> None:
    """The tool exits with 1 where ports have errors."""
    assert not failures("ibqueryerrors", "", "", 1, normal_exits=(0, 1))
