"""Machines that are booted once for all tests that ask what happened in them."""

import pytest

from tests.support.ahead import RUN
from tests.vm.boots import outcome
from tests.vm.outcome import Outcome


@pytest.fixture(scope="session")
def rxe(request: pytest.FixtureRequest) -> Outcome:
    """Return what happened to Soft-RoCE devices and the service."""
    return outcome("rxe", request.config.stash[RUN])


@pytest.fixture(scope="session")
def fakeib(request: pytest.FixtureRequest) -> Outcome:
    """Return what happened to InfiniBand devices."""
    return outcome("fakeib", request.config.stash[RUN])


@pytest.fixture(scope="session")
def package(request: pytest.FixtureRequest) -> Outcome:
    """Return what happened to the .deb."""
    return outcome("package", request.config.stash[RUN])
