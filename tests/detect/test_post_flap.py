"""What of ``post_flap_degraded`` a node can show at all; the rest is in transport's."""

from __future__ import annotations

import pytest

from fabricmon.detect.transport import Transport
from tests.rails import ROCE, Rails


@pytest.mark.parametrize("rails", [1, 2])
def test_too_few_rails_are_blind(rails: int) -> None:
    """With one other rail nobody knows which of the two is odd, and that is said."""
    node = Rails(Transport, infos=ROCE[:rails])
    blind = {each.kind: each.reason for each in node.detectors[0].blind(node.step())}
    assert blind["post_flap_degraded"] == f"{rails} rails: too few to compare"


def test_three_rails_see() -> None:
    """Two that agree are enough."""
    node = Rails(Transport, infos=ROCE[:3])
    blind = {each.kind for each in node.detectors[0].blind(node.step())}
    assert "post_flap_degraded" not in blind
