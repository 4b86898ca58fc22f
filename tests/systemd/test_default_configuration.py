import re
from pathlib import Path

import msgspec
import yaml

from fabricmon.config import Config

FILE = Path(__file__).parent.parent.parent / "systemd" / "fabricmon.yaml"


def _uncommented() -> str:
    """Turn every commented key into a key: prose has one space after its mark."""
    lines = FILE.read_text().splitlines()
    return "\n".join(line[1:] for line in lines if re.match(r"#(  )?\S", line))


class TestDefaultConfiguration:
    def test_changes_nothing(self) -> None:
        """As it comes the file sets no key."""
        assert yaml.safe_load(FILE.read_text()) is None

    def test_shows_the_defaults(self) -> None:
        """Every key that the file shows exists, and has the default that it shows."""
        shown = yaml.safe_load(_uncommented())

        assert msgspec.convert(shown, Config) == Config()
        assert len(shown) > 5
