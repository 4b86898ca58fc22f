"""Writes the dashboards: ``dashboards/*.json``, and the same into the chart.

Helm cannot read outside its folder, so the chart has copies; a test proves both fresh.
"""

from __future__ import annotations

from pathlib import Path

import board_agents
import board_fleet
import board_jobs
import board_node
import board_roce
import board_stragglers
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from looks import build

BOARDS = (
    board_fleet.BOARD,
    board_node.BOARD,
    board_roce.BOARD,
    board_stragglers.BOARD,
    board_jobs.BOARD,
    board_agents.BOARD,
)

HERE = Path(__file__).parent
FOLDERS = (HERE, HERE.parent / "deploy/helm/fabricmon/dashboards")


def main() -> None:
    """Write every board into every folder."""
    for folder in FOLDERS:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in documents().items():
            (folder / name).write_text(text, "utf-8")


def documents() -> dict[str, str]:
    """Return the text of every dashboard by the name of its file."""
    encoder = JSONEncoder(sort_keys=True, indent=2)
    return {
        f"{board.uid}.json": encoder.encode(build(board).build()) + "\n"
        for board in BOARDS
    }


if __name__ == "__main__":
    main()
