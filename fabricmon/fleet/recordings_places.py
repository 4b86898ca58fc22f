"""Where compute ports are and which jobs use them: joined once for all that compares.

Only ports with the role ``compute`` are rails (``faults`` N12, N13), and only those
that nobody works on (N28). Nodes are comparable where they share a job (N37, N38), so
there is one series for each port and job. Agents a version behind do not say which
ports a job uses: there the only job of the node has all of its rails, and a node with
several is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.fleet.comparing import LEAF_RAIL, RAILS, TRAININGS, Site, laid_out
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
    yield Recording(
        LEAF_RAIL,
        _leaf_rail(site),
        "The rail of each leaf, where all of its ports are of one rail.",
        level=2,
    )


def _rails(site: Site) -> str:
    info = site.series("fabricmon_infiniband_port_info", 'role="compute",is_vf!="true"')
    node, port = site.node, site.port
    held = "fabricmon_maintenance"
    whole = site.series(held, 'device=""')
    device = site.series(held, 'device!="",port=""')
    ports = f"topk by ({port}) (1, max by ({port}, {_PLACE}) ({info}))"
    rack = site.series("fabricmon_node_info", 'rack!=""')
    racks = f"topk by ({node}) (1, max by ({node}, rack) ({rack}))"
    return laid_out(f"""
        (
          {ports} * on ({node}) group_left (rack) {racks}
          or
          {ports} unless on ({node}) {rack}
        )
        unless on ({node}) {whole}
        unless on ({site.device}) {device}
        unless on ({port}) {site.series(held, 'device!=""')}
    """)


def _trainings(site: Site) -> str:
    node, port = site.node, site.port
    named = site.names.training("fabricmon_port_job_info")
    jobs = site.names.training("fabricmon_job_info")
    known = site.series("fabricmon_port_job_info")
    single = f"max by ({node}, {TRAINING}) ({jobs})"
    return laid_out(f"""
        max by ({port}, {TRAINING}) ({named})
        * on ({port}) group_left ({_PLACE}, rack) {RAILS}
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
    pairs = f"""count by ({site.of("leaf", "rail")}) ({RAILS}{{leaf!="",rail!=""}})"""
    leaf = site.of("leaf")
    return f"{pairs}\nand on ({leaf}) (count by ({leaf}) ({pairs}) == 1)"
