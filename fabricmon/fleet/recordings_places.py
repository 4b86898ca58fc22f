"""Where compute ports are and which jobs use them: joined once for all that compares.

Only ports with the role ``compute`` are rails (``faults`` N12, N13), and only those
that nobody works on (N28). Nodes are comparable where they share a job (N37, N38), so
there is one series for each port and job. Agents a version behind do not say which
ports a job uses: there the only job of the node has all of its rails, and a node with
several is not compared.

What is counted of them is recorded as well: whoever compares then reads some numbers
of leafs and rails, not all ports again.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet.agent_alerts import OFF
from fabricmon.fleet.comparing import (
    CLOCKED,
    LEAF_RAIL,
    NODE_TRAININGS,
    PORTS,
    RAIL_NODES,
    RAILS,
    TRAINING_PORTS,
    TRAININGS,
    Site,
    laid_out,
)
from fabricmon.fleet.rule import TRAINING, Recording

_PLACE = "rail, leaf, link_layer"


def recordings(site: Site) -> Iterator[Recording]:
    """Yield them."""
    yield Recording(
        RAILS,
        _rails(site),
        "Compute ports that nobody works on, with rail, leaf and rack; one a port.",
    )
    yield Recording(
        TRAININGS,
        _trainings(site),
        "The same for each training job that uses the port, in the label training.",
        level=2,
    )
    yield from _numbers(site)
    yield Recording(
        LEAF_RAIL,
        _leaf_rail(site),
        "The rail of each leaf, where all of its ports are of one rail.",
        level=3,
    )


def _numbers(site: Site) -> Iterator[Recording]:
    """Yield how many ports and nodes there are."""
    place, trained = site.of("leaf", "rail", "rack"), site.trained
    node = f"{site.node}, {TRAINING}"
    yield Recording(
        PORTS,
        f"count by ({place}) ({RAILS})",
        "Compute ports of each leaf, rail and rack.",
        level=2,
    )
    yield Recording(
        CLOCKED,
        f"count by ({place}) ({RAILS} unless on ({site.node}) {OFF})",
        "The same of nodes whose clock is right.",
        level=2,
    )
    yield Recording(
        TRAINING_PORTS,
        f"count by ({trained}, rail, leaf) ({TRAININGS})",
        "Ports of each training job, by rail and leaf.",
        level=3,
    )
    yield Recording(
        NODE_TRAININGS,
        f"count by ({node}, link_layer) ({TRAININGS})",
        "Ports of each training job on a node.",
        level=3,
    )
    yield Recording(
        RAIL_NODES,
        f"count by ({trained}, rail) "
        f'(group by ({node}, rail) ({TRAININGS}{{rail!=""}}))',
        "Nodes of a job that have the rail.",
        level=3,
    )


def _rails(site: Site) -> str:
    info = site.series("fabricmon_infiniband_port_info", 'role="compute",is_vf!="true"')
    node, port = site.node, site.port
    ports = f"topk by ({port}) (1, max by ({port}, {_PLACE}) ({info}))"
    rack = site.series("fabricmon_node_info", 'rack!=""')
    racks = f"topk by ({node}) (1, max by ({node}, rack) ({rack}))"
    return laid_out(f"""
        (
          {ports} * on ({node}) group_left (rack) {racks}
          or
          {ports} unless on ({node}) {rack}
        )
        {site.not_worked_on}
    """)


def _trainings(site: Site) -> str:
    node, port = site.node, site.port
    named = site.names.training("fabricmon_port_job_info")
    jobs = site.names.training("fabricmon_job_info")
    known = site.series("fabricmon_port_job_info")
    single = f"max by ({node}, {TRAINING}) ({jobs})"
    return laid_out(f"""
        max by ({port}, {TRAINING}) ({named})
        * on ({port}) group_left ({_PLACE}, rack) topk by ({port}) (1, {RAILS})
        or
        (
          {RAILS}
          * on ({node}) group_left ({TRAINING}) (
            ({single} and on ({node}) (count by ({node}) ({single}) == 1))
            unless on ({node}) {known}
          )
        )
    """)


def _leaf_rail(site: Site) -> str:
    leaf = site.of("leaf")
    pairs = f"""count by ({site.of("leaf", "rail")}) ({PORTS}{{leaf!="",rail!=""}})"""
    return f"{pairs}\nand on ({leaf}) (count by ({leaf}) ({pairs}) == 1)"
