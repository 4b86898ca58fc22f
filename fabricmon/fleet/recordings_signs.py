"""What is odd about compute ports at this moment, with where they are.

Few ports have any of these signs. They are put together first, and then joined with
all places at once: each join reads every port, however few there are to be joined. Places
are looked up seldom, so who works on a port is asked here again.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet.comparing import PLACE_LABELS, RAILS, Site, laid_out
from fabricmon.fleet.promql import duration
from fabricmon.fleet.rule import Recording

INACTIVE = "port:fabricmon_state:below_active"
SIGNS = "port:fabricmon_sign:placed"
FELL, INITIALISING = "fell", "initialising"
INTERRUPTED, UNMARKED = "interrupted", "unmarked"
HELD, SENDING, ONSET = "held", "sending", "onset"

_DOWN, _ACTIVE = 1, 4


def recordings(site: Site) -> Iterator[Recording]:
    """Yield them."""
    state = site.series("fabricmon_infiniband_state_id")
    yield Recording(
        INACTIVE,
        f"max by ({site.port}) ({state} < {_ACTIVE})",
        "State of ports that are not ACTIVE.",
    )
    signs = {
        FELL: _fell(site),
        INITIALISING: f"{INACTIVE} > {_DOWN}",
        INTERRUPTED: _interrupted(site),
        **_pauses(site),
        UNMARKED: _unmarked(site),
    }
    yield Recording(
        SIGNS,
        placed(site, "sign", signs),
        "Ports that fell, are or were being initialised, are held up or hold others "
        "up, or are told apart by how they are held up.",
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


def _interrupted(site: Site) -> str:
    """Return ports that were not ACTIVE for moments, although no link went down.

    That may lie between two scrapes: the time is counted by the agent. A link that
    went down says so by its own time while the outage is short, else by its state.
    """
    limits = site.options.comparisons.causes
    window = limits.interrupted_window_seconds
    lost = site.counted("increase", "fabricmon_port_downtime_seconds_total", window)
    last = site.series("fabricmon_port_last_down_timestamp_seconds")
    lately = 2 * window
    return f"""
        {lost} >= {limits.interrupted_seconds:g}
        unless on ({site.port}) ({last} > time() - {lately:g})
        unless on ({site.port}) (min_over_time({INACTIVE}[{duration(lately)}]) <= {_DOWN})
    """


def _unmarked(site: Site) -> str:
    """Return ports that are paused and never marked, as other rails of the node are."""
    return site.per_port(
        "fabricmon_finding_open",
        'kind="config_mismatch",role="observer",severity="info"',
    )


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
