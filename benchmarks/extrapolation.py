"""From a fleet's run to what larger fleets need, on paper: the tables of docs/research/large-fleets.md.

``python -m benchmarks.extrapolation`` reads ``docs/research/growth/fleet.json``, as
``python -m benchmarks.fleet --json``
left it, and writes both tables between their marks.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from math import ceil
from pathlib import Path
from typing import Any

from benchmarks.observers import GRID
from benchmarks.servers import REPOSITORY
from edge_agent.publisher import HEARTBEAT

_FLEETS = (10_000, 100_000, 1_000_000)
_DAY = timedelta(days=1)
_HALF = 0.5  # of what a process can do is what it is given to do
_START, _END = "<!-- measured: python -m benchmarks.extrapolation -->", "<!-- /measured -->"


def main() -> None:
    """Write the tables."""
    result = json.loads((REPOSITORY / "docs" / "research" / "growth" / "fleet.json").read_text(encoding="utf-8"))
    write_between(REPOSITORY / "docs" / "research" / "large-fleets.md", f"{measured(result)}\n{needed(result)}")


def measured(result: Mapping[str, Any]) -> str:
    """Return what was measured, by spell, and what it makes of one event and one machine."""
    spells = result["spells"]
    names = [one["name"] for one in spells]
    rows = [
        ("events + states per second", [f"{one['acked']:,.0f} + {one['states']:,.0f}" for one in spells]),
        ("time to ack, ms, p50 / p99", [_pair(1e3 * one["lag_p50"], 1e3 * one["lag_p99"]) for one in spells]),
        ("refresh of all forecasts, s", [_seconds(one["refresh"]) for one in spells]),
        ("a forecast over REST, ms, p50 / p99", [_asked(one, "forecast") for one in spells]),
        ("fleet page, ms, all / changes", [_page(one) for one in spells]),
        ("cores: service, broker", [_cores(one) for one in spells]),
        ("memory: service, broker, MB", [_memory(one) for one in spells]),
    ]
    head = [f"{result['machines']:,} machines, {result['database']}", *names]
    event, machine = result["costs"]["us_an_event"], result["costs"]["seconds_a_machine_day"]
    size = result["bytes"]
    cost = (
        f"\nAn event costs {_beside(event):,.0f} µs of the service, {event['broker']:,.0f} µs of the broker and "
        f"{size['event']:.0f} bytes on disk.\nA machine costs {_beside(machine):.2f} s of the service and "
        f"{machine['broker']:.2f} s of the broker a day beside its events,\nand with them "
        f"{a_day(result) / 1e3:.0f} kB of disk a day: a forecast is {size['forecast']:.0f} bytes, its outcome "
        f"{size['outcome']:.0f}.\n"
    )
    return _table(head, rows) + cost


def needed(result: Mapping[str, Any]) -> str:
    """Return what fleets of other sizes need if every process is given half of what it can do."""
    a_message, a_forecast = 1 / messages_a_second(result), refresh_seconds(result) / result["machines"]
    states, alarms = _DAY / HEARTBEAT, result["spells"][0]["alarms_a_day"]
    broker = (
        result["costs"]["seconds_a_machine_day"]["broker"]
        + alarms * result["costs"]["us_an_event"]["broker"] / 1e6
    )

    def a_second(fleet: int, daily: float) -> float:
        return fleet * daily / _DAY.total_seconds()

    rows = [
        ("events / states per second", [_pair(a_second(n, alarms), a_second(n, states)) for n in _FLEETS]),
        ("broker connections", [f"{n:,}" for n in _FLEETS]),
        ("broker cores", [_fewest(a_second(n, broker) / _HALF) for n in _FLEETS]),
        ("ingest processes", [_fewest(a_second(n, alarms + states) * a_message / _HALF) for n in _FLEETS]),
        ("forecast processes", [_fewest(n * a_forecast / GRID.total_seconds() / _HALF) for n in _FLEETS]),
        ("events, millions per month", [f"{n * alarms * 30 / 1e6:,.0f}" for n in _FLEETS]),
        ("disk, GB per year", [f"{n * a_day(result) * 365 / 1e9:,.0f}" for n in _FLEETS]),
        ("training jobs a day", [f"{n / 30:,.0f}" for n in _FLEETS]),
    ]
    return _table(["machines", *(f"{n:,}" for n in _FLEETS)], rows)


def messages_a_second(result: Mapping[str, Any]) -> float:
    """Return the most messages a second that one process took without pages open, while acks came in time."""
    kept_up = [one for one in result["spells"] if not one["wall"] and one["rest_ms"]["fleet p50"] is None]
    return max(float(one["acked"] + one["states"]) for one in kept_up)


def refresh_seconds(result: Mapping[str, Any]) -> float:
    """Return how long a refresh of the whole fleet took; the first one counts if no other was seen."""
    seen = [one["refresh"] for one in result["spells"] if one["refresh"] is not None]
    return float(min(seen, default=result["first_refresh"]))


def a_day(result: Mapping[str, Any]) -> float:
    """Return the bytes that a machine adds a day."""
    size, alarms = result["bytes"], result["spells"][0]["alarms_a_day"]
    return float(alarms * size["event"] + (size["forecast"] + size["outcome"]) * (_DAY / GRID))


def write_between(file: Path, text: str) -> None:
    """Replace what stands between the marks of a file."""
    before, _, rest = file.read_text(encoding="utf-8").partition(_START)
    _, mark, after = rest.partition(_END)
    if not mark:
        raise RuntimeError(f"{file} has no place for the figures; put {_START} and {_END} on lines of their own")
    file.write_text(f"{before}{_START}\n{text}{_END}{after}", encoding="utf-8")


def _table(head: list[str], rows: list[tuple[str, list[str]]]) -> str:
    lines = [head, ["---"] * len(head), *([name, *cells] for name, cells in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _pair(first: float, second: float) -> str:
    return f"{first:,.0f} / {second:,.0f}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"  # noqa: RUF001


def _asked(one: Mapping[str, Any], name: str) -> str:
    times = one["rest_ms"]
    return _pair(times[f"{name} p50"], times[f"{name} p99"]) if times[f"{name} p50"] is not None else "–"  # noqa: RUF001


def _page(one: Mapping[str, Any]) -> str:
    whole, changes = one["rest_ms"]["fleet p50"], one["rest_ms"]["changes p50"]
    return _pair(whole, changes or whole) if whole is not None else "–"  # noqa: RUF001


def _cores(one: Mapping[str, Any]) -> str:
    return f"{_beside(one['cores']):.2f}, {one['cores']['broker']:.2f}"


def _memory(one: Mapping[str, Any]) -> str:
    return f"{_beside(one['megabytes']):,.0f}, {one['megabytes']['broker']:,.0f}"


def _beside(parts: Mapping[str, float]) -> float:
    """Return what is not the broker's: a service may be several processes and a database."""
    return sum(parts.values()) - parts["broker"]


def _fewest(cores: float) -> str:
    return f"{ceil(cores):,}"


if __name__ == "__main__":
    main()
