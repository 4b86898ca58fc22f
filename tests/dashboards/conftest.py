"""The dashboards' own modules, which lie beside each other as scripts do."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "dashboards"))
