"""The rules that a replay evaluates: the fleet's own, or those of a file."""

from __future__ import annotations

from pathlib import Path

from fabricmon.fleet.concluding import Site
from fabricmon.fleet.inhibitions import inhibitions
from fabricmon.fleet.options import FleetOptions
from fabricmon.fleet.rule_read import read_rules
from fabricmon.fleet.rules import groups

DEFAULT = "default"


def site_of(rules: str) -> Site:
    """Return a site with `DEFAULT` rules, or those of a file of Prometheus' rules.

    Raises `ParseError` where the file holds none.
    """
    options = FleetOptions()
    made = groups(options) if rules == DEFAULT else read_rules(Path(rules))
    return Site(options, made, inhibitions(options))
