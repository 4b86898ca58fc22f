"""Boards in the words of Grafana, by its own library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    TableColoredBackgroundCellOptions,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from panel import Board, Colours, Look, Panel, Query, Row, Variable

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
TAG = "fabricmon"
GREEN, YELLOW, ORANGE, RED, GREY = "green", "yellow", "orange", "red", "#808080"

_VERDICTS = (
    ("0", "healthy", GREEN),
    ("1", "unknown", GREY),
    ("2", "degraded", ORANGE),
    ("3", "down", RED),
)
_STATES = (
    ("1", "DOWN", RED),
    ("2", "INIT", ORANGE),
    ("3", "ARMED", YELLOW),
    ("4", "ACTIVE", GREEN),
)


def build(board: Board) -> dashboard.Dashboard:
    """Return a board as Grafana's builder."""
    built = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.what)
        .tags([TAG])
        .readonly()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .time("now-3h", "now")
        .refresh("30s")
        .timezone("browser")
        .link(_links())
        .annotation(_pages())
        .with_variable(
            dashboard.DatasourceVariable("datasource")
            .label("Data source")
            .type("prometheus")
        )
    )
    for variable in board.variables:
        built = built.with_variable(_variable(variable))
    for row in board.rows:
        built = built.with_row(dashboard.Row(row.title))
        for each in _panels(row):
            built = built.with_panel(each)
    return built


def _links() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("fabricmon")
        .type(DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(True)
        .include_vars(True)
        .keep_time(True)
    )


def _pages() -> dashboard.AnnotationQuery:
    return (
        dashboard.AnnotationQuery()
        .name("Incidents")
        .datasource(SOURCE)
        .enable(True)
        .icon_color(RED)
        .expr(
            'ALERTS{cluster=~"$cluster",alertname=~"Fabric.*",alertstate="firing",'
            'notice=~"page|ticket"}'
        )
    )


def _variable(variable: Variable) -> dashboard.QueryVariable:
    metric, name = variable.metric, variable.name
    return (
        dashboard.QueryVariable(name)
        .label(variable.title)
        .datasource(SOURCE)
        .query(f"label_values({metric}, {name})")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.NATURAL_ASC)
        .multi(variable.several)
        .include_all(variable.several)
        .all_value(".*")
    )


def _panels(row: Row) -> Iterator[Any]:
    return (_LOOKS[panel.look](panel) for panel in row.panels)


def _dressed(built: Any, panel: Panel) -> Any:
    """Give a panel what all have."""
    built = (
        built.title(panel.title)
        .description(panel.what)
        .datasource(SOURCE)
        .unit(panel.unit)
        .span(panel.width)
        .height(panel.height)
    )
    if panel.to_node:
        built = built.data_links([_to_node()])
    if panel.colours is Colours.VERDICT:
        return built.mappings([_mapping(_VERDICTS)])
    if panel.colours is Colours.STATE:
        return built.mappings([_mapping(_STATES)])
    return built.thresholds(_thresholds(panel)).color_scheme(_scheme(panel))


def _to_node() -> dashboard.DashboardLink:
    url = (
        "/d/fabricmon-node?var-datasource=${datasource}&var-cluster=${cluster:raw}"
        "&var-node=${__field.labels.node}&var-device=${__field.labels.device}"
        "&${__url_time_range}"
    )
    return dashboard.DashboardLink("This node").url(url)


def _mapping(rows: tuple[tuple[str, str, str], ...]) -> ValueMap:
    return ValueMap(
        {
            value: ValueMappingResult(text=text, color=colour, index=index)
            for index, (value, text, colour) in enumerate(rows)
        }
    )


def _thresholds(panel: Panel) -> dashboard.ThresholdsConfig:
    steps = [Threshold(value=None, color=GREEN)]
    if panel.colours is Colours.GOOD_AT_ZERO:
        steps.append(Threshold(value=panel.high, color=RED))
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def _scheme(panel: Panel) -> dashboard.FieldColor:
    mode = {
        Colours.GOOD_AT_ZERO: FieldColorModeId.THRESHOLDS,
        Colours.BAD_WHEN_HIGH: FieldColorModeId.CONTINUOUS_GR_YL_RD,
        Colours.BAD_WHEN_LOW: FieldColorModeId.CONTINUOUS_RD_YL_GR,
    }.get(panel.colours, FieldColorModeId.PALETTE_CLASSIC)
    return dashboard.FieldColor().mode(mode)


def _target(query: Query, number: int) -> prometheus.Dataquery:
    return (
        prometheus.Dataquery()
        .expr(query.expr)
        .legend_format(query.legend)
        .datasource(SOURCE)
        .ref_id(_letter(number))
    )


def _letter(number: int) -> str:
    return chr(ord("A") + number)


def _stat(panel: Panel) -> Any:
    built = _dressed(stat.Panel(), panel)
    for number, query in enumerate(panel.queries):
        built = built.with_target(_target(query, number).instant())
    return (
        built.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .color_mode(BigValueColorMode.BACKGROUND)
        .graph_mode(BigValueGraphMode.NONE)
    )


def _series(panel: Panel) -> Any:
    built = _dressed(timeseries.Panel(), panel)
    for number, query in enumerate(panel.queries):
        built = built.with_target(_target(query, number).range())
    tooltip = common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI)
    return built.tooltip(tooltip).line_width(1).fill_opacity(5).min(0)


def _timeline(panel: Panel) -> Any:
    built = _dressed(statetimeline.Panel(), panel)
    for number, query in enumerate(panel.queries):
        built = built.with_target(_target(query, number).range())
    return built.merge_values(True).show_value(VisibilityMode.NEVER).row_height(0.8)


def _table(panel: Panel) -> Any:
    built = _with_tables(_dressed(table.Panel(), panel), panel)
    names = {"Time": True, "__name__": True}
    single = len(panel.queries) == 1
    renamed = {
        "Value" if single else f"Value #{_letter(number)}": query.legend
        for number, query in enumerate(panel.queries)
    }
    keep = [*panel.columns_shown, *renamed]
    built = (
        built.with_transformation(DataTransformerConfig("merge", options={}))
        .with_transformation(
            DataTransformerConfig(
                "filterFieldsByName", options={"include": {"names": keep}}
            )
        )
        .with_transformation(
            DataTransformerConfig(
                "organize",
                options={
                    "excludeByName": names,
                    "indexByName": {name: i for i, name in enumerate(keep)},
                    "renameByName": renamed,
                },
            )
        )
    )
    return built.filterable(True)


def _with_tables(built: Any, panel: Panel) -> Any:
    for number, query in enumerate(panel.queries):
        target = _target(query, number).instant().format(PromQueryFormat.TABLE)
        built = built.with_target(target)
    return built


def _matrix(panel: Panel) -> Any:
    """Rows by columns, one coloured cell for each: a heat map of places."""
    built = _with_tables(_dressed(table.Panel(), panel), panel)
    matrix = {
        "columnField": panel.columns,
        "rowField": panel.rows,
        "valueField": "Value",
        "emptyValue": "null",
    }
    corner = f"{panel.rows}\\{panel.columns}"
    return (
        built.with_transformation(
            DataTransformerConfig("groupingToMatrix", options=matrix)
        )
        .cell_options(TableColoredBackgroundCellOptions())
        .min(0)
        .max(panel.high)
        .decimals(2)
        .override_by_name(
            corner,
            [
                DynamicConfigValue("custom.cellOptions", {"type": "auto"}),
                DynamicConfigValue("links", [_row_link(corner)]),
            ],
        )
    )


def _row_link(field: str) -> dict[str, object]:
    url = (
        "/d/fabricmon-node?var-datasource=${datasource}&var-cluster=${cluster:raw}"
        f"&var-node=${{__data.fields['{field}']}}&${{__url_time_range}}"
    )
    return {"title": "This node", "url": url}


_LOOKS: dict[Look, Callable[[Panel], Any]] = {
    Look.STAT: _stat,
    Look.SERIES: _series,
    Look.TABLE: _table,
    Look.MATRIX: _matrix,
    Look.TIMELINE: _timeline,
}
