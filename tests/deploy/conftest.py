"""Packages of the code under test, built once for all processes of a run."""

import pytest

from tests.support.image import Image
from tests.support.image import image as _image
from tests.support.packages import Packages
from tests.support.packages import packages as _packages


@pytest.fixture(scope="session")
def packages() -> Packages:
    """Return the packages; skips where they cannot be built."""
    return _packages()


@pytest.fixture(scope="session")
def image(packages: Packages) -> Image:
    """Return the container image; skips where it cannot be built."""
    return _image(packages)
