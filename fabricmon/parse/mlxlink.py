"""The output of mlxlink, as JSON or as text.

Every value is a string, in JSON too; ``N/A`` stands for numbers, lists and objects
alike. Limits follow in brackets: ``61 [-10..80]``. Lanes are separated by commas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fabricmon.parse.messages import failures, nothing_found
from fabricmon.parse.report import (
    BitErrors,
    LinkDetail,
    ModuleDetail,
    Report,
    ToolFailure,
)
from fabricmon.parse.speeds import by_name
from fabricmon.parse.sysfs import parse_lanes, parse_state
from fabricmon.parse.text import decimal, field, lines, number, without_colour

TOOL = "mlxlink"
MAX_LANES = 16
_ABSENT = frozenset({"", "N/A", "NA", "-"})

_Sections = Mapping[str, Mapping[str, str]]


def mlxlink_report(
    stdout: str, stderr: str = "", exit_status: int | None = None
) -> Report:
    """Return the link, its bit errors and its module, as far as the tool was asked."""
    text = without_colour(stdout)
    errors = list(failures(TOOL, text, stderr, exit_status))
    if text.lstrip().startswith("{"):
        sections = dict(_json_sections(text, errors))
    else:
        sections = _text_sections(text)
    if not sections and not errors:
        errors.append(nothing_found(TOOL, "section"))
    operation = sections.get("Operational Info", {})
    advice = sections.get("Troubleshooting Info", {})
    return Report(
        TOOL,
        errors=tuple(errors),
        tells_state=False,
        link=_link(operation, advice) if operation or advice else None,
        bit_errors=_bit_errors(sections.get("Physical Counters and BER Info", {})),
        module=_module(sections.get("Module Info", {})),
        fw=_value(sections.get("Tool Information", {}), "Firmware Version"),
    )


def _json_sections(
    text: str, errors: list[ToolFailure]
) -> Iterator[tuple[str, dict[str, str]]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        errors.append(ToolFailure(TOOL, "the text is not whole JSON"))
        return
    status = _table(document).get("status")
    code, message = _table(status).get("code", 0), _table(status).get("message")
    if str(code) != "0":
        errors.append(ToolFailure(TOOL, f"status {code}: {message}"))
    output = _table(_table(_table(document).get("result")).get("output"))
    for title, section in output.items():
        fields = _table(section).items()
        yield title, {key: _text(value) for key, value in fields}


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    """Return a value as the text output has it: lanes with commas between them."""
    if isinstance(value, dict):
        value = value.get("values", "")
    if isinstance(value, list):
        return ",".join(str(item) for item in value[:MAX_LANES])
    return str(value) if isinstance(value, str | int | float) else ""


def _text_sections(text: str) -> dict[str, dict[str, str]]:
    """Read underlined titles and ``key : value`` lines; a key may be in two sections."""
    sections: dict[str, dict[str, str]] = {}
    title, current = "", None
    for line in lines(text):
        plain = line.strip()
        if plain and not plain.strip("-"):
            current = sections.setdefault(title, {}) if title else None
        elif ":" in plain and current is not None:
            key, value = field(plain)
            current.setdefault(key, value)
        else:
            title = plain or title
    return sections


def _link(operation: Mapping[str, str], advice: Mapping[str, str]) -> LinkDetail:
    state, speed = _value(operation, "State"), _value(operation, "Speed")
    width = parse_lanes(_value(operation, "Width") or "")
    loopback = _value(operation, "Loopback Mode")
    autoneg = _value(operation, "Auto Negotiation")
    return LinkDetail(
        state=parse_state(state or ""),
        state_text=state,
        phys_state=_value(operation, "Physical state"),
        speed_gbps=_gbps(speed or "", width),
        speed_text=speed,
        width=width,
        fec=_value(operation, "FEC"),
        loopback=None if loopback is None else not loopback.startswith("No "),
        autoneg=None if autoneg is None else autoneg.startswith("ON"),
        status_opcode=decimal(_value(advice, "Status Opcode") or ""),
        recommendation=_value(advice, "Recommendation"),
    )


def _gbps(speed: str, width: int | None) -> float | None:
    """Read ``400G``, ``100G_2X``, ``IB-EDR``; a name is the speed of one lane."""
    known = by_name(speed)
    if known is not None:
        return None if width is None else known.gbps * width
    whole, unit, _ = speed.partition("G")
    return number(whole) if unit else None


def _bit_errors(section: Mapping[str, str]) -> BitErrors | None:
    if not section:
        return None
    return BitErrors(
        effective_physical_errors=_count(section, "Effective Physical Errors"),
        effective_ber=_number(section, "Effective Physical BER"),
        symbol_errors=_count(section, "Symbol Errors"),
        symbol_ber=_number(section, "Symbol BER"),
        raw_ber=_number(section, "Raw Physical BER"),
        raw_ber_per_lane=_numbers(section, "Raw Physical BER Per Lane"),
        raw_errors_per_lane=_counts(section, "Raw Physical Errors Per Lane"),
        link_down=_count(section, "Link Down Counter"),
        link_error_recovery=_count(section, "Link Error Recovery Counter"),
        time_since_clear_min=_number(section, "Time Since Last Clear [Min]"),
    )


def _module(section: Mapping[str, str]) -> ModuleDetail | None:
    if not section:
        return None
    return ModuleDetail(
        identifier=_value(section, "Identifier"),
        vendor=_value(section, "Vendor Name"),
        part=_value(section, "Vendor Part Number"),
        serial=_value(section, "Vendor Serial Number"),
        temperature_c=_number(section, "Temperature [C]"),
        temperature_range=_range(section, "Temperature [C]"),
        voltage_mv=_number(section, "Voltage [mV]"),
        voltage_range=_range(section, "Voltage [mV]"),
        bias_ma=_numbers(section, "Bias Current [mA]"),
        bias_range=_range(section, "Bias Current [mA]"),
        rx_dbm=_numbers(section, "Rx Power Current [dBm]"),
        rx_range=_range(section, "Rx Power Current [dBm]"),
        tx_dbm=_numbers(section, "Tx Power Current [dBm]"),
        tx_range=_range(section, "Tx Power Current [dBm]"),
        wavelength_nm=_number(section, "Wavelength [nm]"),
        los_alarm=_value(section, "LOS Alarm"),
    )


def _value(section: Mapping[str, str], key: str) -> str | None:
    text = section.get(key, "").strip()
    return None if text in _ABSENT else text


def _measure(section: Mapping[str, str], key: str) -> str:
    return section.get(key, "").partition("[")[0].strip()


def _count(section: Mapping[str, str], key: str) -> int | None:
    return decimal(_measure(section, key))


def _number(section: Mapping[str, str], key: str) -> float | None:
    return number(_measure(section, key))


def _lanes(section: Mapping[str, str], key: str) -> tuple[str, ...] | None:
    text = _measure(section, key)
    if text in _ABSENT:
        return None
    return tuple(lane.strip() for lane in text.split(",", MAX_LANES)[:MAX_LANES])


def _numbers(section: Mapping[str, str], key: str) -> tuple[float | None, ...] | None:
    lanes = _lanes(section, key)
    return None if lanes is None else tuple(map(number, lanes))


def _counts(section: Mapping[str, str], key: str) -> tuple[int | None, ...] | None:
    lanes = _lanes(section, key)
    return None if lanes is None else tuple(map(decimal, lanes))


def _range(section: Mapping[str, str], key: str) -> tuple[float, float] | None:
    """Read the limits of ``61 [-10..80]``."""
    _, bracket, rest = section.get(key, "").partition("[")
    low, dots, high = rest.partition("]")[0].partition("..")
    limits = number(low.strip()), number(high.strip())
    if not bracket or not dots or limits[0] is None or limits[1] is None:
        return None
    return limits[0], limits[1]
