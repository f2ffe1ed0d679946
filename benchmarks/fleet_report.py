"""The figures of a fleet's run, laid out for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table


def shown(result: Mapping[str, Any]) -> list[Table | str]:
    """Return the spells, the costs and what gave way first."""
    spells = result["spells"]
    first = next((one for one in spells if one["wall"]), None)
    wall = f"{first['name']}, {first['wall']}" if first else "nothing gave way"
    title = f"{result['machines']:,} machines on {result['database']}"
    return [
        _spells(title, spells),
        _costs(result["costs"]),
        f"On disk: {', '.join(f'{name} {size:.0f} bytes' for name, size in result['bytes'].items())}.",
        f"Every machine had a forecast {result['first_refresh']:.0f} s after the start.",
        f"First wall: {wall}.",
        f"In {result['seconds']:.0f} s.",
    ]


def _spells(title: str, spells: Sequence[Mapping[str, Any]]) -> Table:
    laid = Table("", title=title, title_justify="left")
    for one in spells:
        laid.add_column(one["name"], justify="right")

    def row(name: str, *cells: str) -> None:
        laid.add_row(name, *cells)

    row("events/s offered", *(f"{one['offered']:,.0f}" for one in spells))
    row("events/s committed", *(f"{one['committed']:,.0f}" for one in spells))
    row("events/s acked", *(f"{one['acked']:,.0f}" for one in spells))
    row("states/s", *(f"{one['states']:,.0f}" for one in spells))
    row(
        "ms to the ack, p50 / p99",
        *(f"{1e3 * one['lag_p50']:,.0f} / {1e3 * one['lag_p99']:,.0f}" for one in spells),
    )
    row("resent / never acked", *(f"{one['resent']:,} / {one['unacked']:,}" for one in spells))
    row("refresh of all forecasts, s", *(_number(one["refresh"]) for one in spells))
    row("passes over machines, s in them", *(f"{one['passes']:.0f}, {one['pass_seconds']:.1f}" for one in spells))
    for asked in ("forecast", "fleet", "changes"):
        times = [(one["rest_ms"][f"{asked} p50"], one["rest_ms"][f"{asked} p99"]) for one in spells]
        row(f"REST {asked}, ms p50 / p99", *(f"{_number(a)} / {_number(b)}" for a, b in times))
    for program in spells[0]["cores"]:
        row(f"{program}, cores", *(f"{one['cores'][program]:.2f}" for one in spells))
    for program in spells[0]["megabytes"]:
        row(f"{program}, MB", *(f"{one['megabytes'][program]:,.0f}" for one in spells))
    row("crowd, cores (behind, s)", *(f"{one['crowd_cores']:.2f} ({one['crowd_behind']:.2f})" for one in spells))
    row("gave way", *(one["wall"] or "-" for one in spells))
    return laid


def _costs(costs: Mapping[str, Any]) -> Table:
    laid = Table("CPU", title="Costs", title_justify="left")
    for program in costs["us_an_event"]:
        laid.add_column(program, justify="right")
    laid.add_row("µs an event", *(f"{value:,.0f}" for value in costs["us_an_event"].values()))
    laid.add_row("s a machine and day", *(f"{value:,.2f}" for value in costs["seconds_a_machine_day"].values()))
    return laid


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
