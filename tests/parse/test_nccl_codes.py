"""The numbers that libraries print are those of the kernel, of verbs and of libfabric."""

import errno
import os

import pytest

from fabricmon.parse.log_event import LogSeverity
from fabricmon.parse.nccl_codes import (
    ASYNC_EVENTS,
    COMPLETIONS,
    EFA_CAUSES,
    ERRNOS,
    RESULT_CODES,
    VENDOR_ERRORS,
    Errno,
    async_event,
    completion,
    completion_named,
    errno_number,
    is_local_address,
    is_local_interface,
    result_name,
)


@pytest.mark.parametrize("each", ERRNOS, ids=lambda each: each.name)
def test_an_errno_is_the_kernels(each: Errno) -> None:
    """The table is the C library's, which a pure parser cannot ask."""
    assert getattr(errno, each.name) == each.number
    assert os.strerror(each.number) == each.text


@pytest.mark.parametrize(
    "text", ["Connection timed out", "connection timed out.", "etimedout"]
)
def test_the_text_of_an_errno_is_its_number(text: str) -> None:
    """Case and a full stop do not matter, and the name does as well."""
    assert errno_number(text) == 110


def test_other_text_is_no_errno() -> None:
    """A sentence that only begins like one is none."""
    assert errno_number("Connection timed out twice") is None


def test_statuses_of_completions_are_numbered_without_a_gap() -> None:
    """As in ``enum ibv_wc_status`` from the first error to the last common one."""
    assert [each.number for each in COMPLETIONS] == list(range(1, 22))


@pytest.mark.parametrize("name", ["IBV_WC_RETRY_EXC_ERR", "RETRY_EXC"])
def test_a_status_has_a_name(name: str) -> None:
    """In verbs' spelling and in the short one."""
    known = completion_named(name)
    assert known is not None
    assert known.number == 12


def test_a_status_that_no_table_knows_is_the_providers() -> None:
    """It is bad, and nothing is invented about it."""
    unknown = completion(99)
    assert (unknown.severity, unknown.cause) == (LogSeverity.CRITICAL, "provider_error")


def test_vendor_errors_go_with_statuses_that_are_known() -> None:
    """A vendor's code explains a status."""
    known = {each.number for each in COMPLETIONS}
    assert all(known.issuperset(statuses) for _, statuses in VENDOR_ERRORS.values())


def test_events_are_numbered_without_a_gap() -> None:
    """As in ``enum ibv_event_type``, with the speed change that came later."""
    assert [each.code for each in ASYNC_EVENTS] == list(range(21))


def test_an_event_is_known_by_text_or_code() -> None:
    """The text wins: codes of other releases may differ."""
    by_text, by_code = async_event("Port Error"), async_event("so what", 10)
    assert by_text is by_code
    assert by_text is not None
    assert by_text.cause == "link_flap"
    assert async_event("port active", 10) is async_event("port active")
    assert async_event("so what") is None


def test_a_port_that_works_again_is_no_alarm() -> None:
    """The event closes the one before."""
    known = async_event("port active")
    assert known is not None
    assert known.severity is LogSeverity.INFO


def test_results_have_the_librarys_names() -> None:
    """Their numbers are those of ``ncclResult_t``."""
    assert [each.number for each in RESULT_CODES] == list(range(9))
    assert result_name(6) == "ncclRemoteError"
    assert result_name(60) is None


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (20, "security_group"),
        (15, "peer_unreachable"),
        (9, "peer_process_died"),
        (4124, "peer_process_died"),
        (4105, "memory_limit"),
    ],
)
def test_codes_of_efa_tell_what_happened(code: int, cause: str) -> None:
    """The device's below 4096, the provider's from there."""
    assert EFA_CAUSES[code] == cause


@pytest.mark.parametrize(
    "name", ["lo", "docker0", "virbr0", "veth81fa783", "br-12ab", "cni0"]
)
def test_an_interface_that_leads_nowhere(name: str) -> None:
    """Bridges of containers and of virtual machines, and the loopback."""
    assert is_local_interface(name)


@pytest.mark.parametrize(
    "name", ["eth0", "bond0", "ib0", "ens5f0np0", "br0", "locnet0"]
)
def test_an_interface_that_leads_somewhere(name: str) -> None:
    """A bridge of one's own making may well be the way out."""
    assert not is_local_interface(name)


def test_addresses_that_no_other_network_reaches() -> None:
    """Link-local ones of both families, and the loopback."""
    assert all(
        map(is_local_address, ("fe80::1%eth0", "169.254.1.2", "127.0.0.1", "::1"))
    )
    assert not any(map(is_local_address, ("10.0.0.1", "fd42::1", "::ffff:10.0.0.1")))
