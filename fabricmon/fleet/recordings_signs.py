"""What is odd about compute ports at this moment, with where they are.

Few ports have any of these signs. They are put together first, and then joined with
all places at once: each join reads every port, however few there are to be joined. Places
are looked up seldom, so who works on a port is asked here again.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet.comparing import PLACE_LABELS, RAILS, Site, laid_out
from fabricmon.fleet.rule import Recording

INACTIVE = "port:fabricmon_state:below_active"
SIGNS = "port:fabricmon_sign:placed"
FELL, INITIALISING = "fell", "initialising"
HELD, SENDING, ONSET = "held", "sending", "onset"

_ACTIVE = 4


def recordings(site: Site) -> Iterator[Recording]:
    """Yield them."""
    state = site.series("fabricmon_infiniband_state_id")
    yield Recording(
        INACTIVE,
        f"max by ({site.port}) ({state} < {_ACTIVE})",
        "State of ports that are not ACTIVE.",
    )
    signs = {FELL: _fell(site), INITIALISING: f"{INACTIVE} > 1", **_pauses(site)}
    yield Recording(
        SIGNS,
        placed(site, "sign", signs),
        "Ports that fell, are being initialised, are held up or hold others up.",
        level=2,
    )


def placed(site: Site, label: str, signs: dict[str, str]) -> str:
    """Return series of compute ports by what they say, with the labels of a place."""
    named = "\nor\n".join(
        f'label_replace(\n{expr},\n"{label}", "{sign}", "", ""\n)'
        for sign, expr in signs.items()
    )
    return laid_out(f"""
        (
          {named}
        )
        * on ({site.port}) group_left ({PLACE_LABELS}) topk by ({site.port}) (1, {RAILS})
        {site.not_worked_on}
    """)


def _fell(site: Site) -> str:
    recent = f"{site.options.comparisons.causes.recent_seconds:g}"
    last = site.series("fabricmon_port_last_down_timestamp_seconds")
    return f"""
        max by ({site.port}) (
          {last} > time() - {recent}
          or
          ({last} and on ({site.port}) {INACTIVE})
        )
    """


def _pauses(site: Site) -> dict[str, str]:
    """Return who is held up or sends pause: by share of time, or 1 by its agent."""
    limits = site.options.comparisons.pauses
    window = limits.window_seconds
    received = site.counted("rate", "fabricmon_pause_received_seconds_total", window)
    sent = site.counted("rate", "fabricmon_pause_transmitted_seconds_total", window)
    onset = site.per_port("fabricmon_port_pause_onset_timestamp_seconds")
    held, origin = (
        site.per_port("fabricmon_finding_open", f'kind="{kind}"')
        for kind in ("pause_victim", "pause_origin")
    )
    return {
        HELD: f"{received} >= {limits.victim_ratio:g}\nor\n{held}",
        SENDING: f"{sent} >= {limits.sender_ratio:g}\nor\n({onset} or {origin}) * 0 + 1",
        ONSET: onset,
    }


def of(sign: str, matchers: str = "") -> str:
    """Return the ports that have a sign."""
    more = f",{matchers}" if matchers else ""
    return f'max without (sign) ({SIGNS}{{sign="{sign}"{more}}})'
