"""What is wrong, how fast events come in, and what the service stands on."""

from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import html

from service.page.components.blocks import NOTHING, number, panel, stats, table
from service.page.components.elements import Chart
from service.page.components.refreshable import Refreshable
from service.page.status_poller import HISTORY_MINUTES, StatusPoller
from wire.rest.health import ProcessView, Status

_KILO = 1000
_HOUR, _DAY = 3600, 86_400
Shown = tuple[dict[str, str | int | float | None], dict[str, str]]


class Banner:
    """Troubles and warnings in their own sentences; calm when there are none."""

    def __init__(self) -> None:
        self._place = Refreshable(_banner)

    def tell(self, pulse: StatusPoller) -> None:
        """Say how it is now."""
        status = pulse.samples[-1].status if pulse.samples else None
        troubles = dict(status.troubles) if status else {}
        if pulse.error:
            troubles["pages"] = f"The service does not say how it is: {pulse.error}"
        self._place.show((troubles, dict(status.warnings) if status else {}))


def _banner(told: tuple[dict[str, str], dict[str, str]]) -> None:
    troubles, warnings = told
    with html.div(role="status").classes("ac-state"):
        for part, why in troubles.items():
            _sentence("✕", "Trouble", part, why, "ac-bad")
        for part, why in warnings.items():
            _sentence("◆", "Worth a look", part, why, "ac-warn")
        if not troubles:
            with html.p().classes("ac-fine"):
                html.span("✓", **{"aria-hidden": "true"}).classes("ac-good")
                calm = "Events are taken and forecasts given." if warnings else "All is well."
                html.span(calm if warnings else f"{calm} Events are taken and forecasts given.")


def _sentence(sign: str, kind: str, part: str, why: str, style: str) -> None:
    with html.p().classes(style):
        html.span(sign, **{"aria-hidden": "true"})
        html.strong(f" {kind}, {part.replace('_', ' ')}: ")
        html.span(why if why.endswith((".", "!", "?")) else f"{why}.")


class Ingest:
    """How fast events come and how long they were on their way, over the last minutes."""

    def __init__(self) -> None:
        with panel("What comes in", note=f"the last {HISTORY_MINUTES} minutes"):
            self._figures: Refreshable[Shown] = Refreshable(lambda told: stats(*told))
            html.h3("Events stored a second")
            self._rate = Chart({}, label="Events stored a second")
            html.h3("Lag: plant seconds from a live alarm to its commit")
            self._lag = Chart({}, label="Lag")
        for chart in (self._rate, self._lag):
            chart.classes("ac-low")

    def tell(self, pulse: StatusPoller) -> None:
        """Draw the minutes up to now."""
        status = pulse.samples[-1].status
        now, ingest = pulse.samples[-1].at, status.ingest
        ago = [(beat.at - now) / 60 for beat in pulse.samples]
        rates = [beat.status.ingest.per_second_1m for beat in pulse.samples]
        self._figures.show(
            (
                {
                    "a second": number(ingest.per_second_1m),
                    "stored since the start": f"{status.counts.get('stored', 0):,}",
                    "half came within": _seconds(ingest.lag_p50_seconds),
                    "19 of 20 within": _seconds(ingest.lag_p95_seconds),
                    "back-filled": f"{ingest.backfilled:,}",
                },
                {
                    "a second": f"{number(ingest.per_second_15m)} over 15 min",
                    "back-filled": "raised before their agent was connected; not part of the lag",
                },
            )
        )
        self._rate.show(
            _lines(ago, {"events a second": rates}),
            label=f"Events stored a second over the last minutes; now {number(ingest.per_second_1m)}.",
        )
        lags = {
            "half within": [beat.status.ingest.lag_p50_seconds for beat in pulse.samples],
            "19 of 20 within": [beat.status.ingest.lag_p95_seconds for beat in pulse.samples],
        }
        self._lag.show(
            _lines(ago, lags),
            label=f"Lag over the last minutes; now 19 of 20 came within {_seconds(ingest.lag_p95_seconds)}.",
        )


def _lines(ago: list[float], named: Mapping[str, Sequence[float | None]]) -> dict[str, Any]:
    """Return lines over the minutes up to now; the second is dashed, so that colour does not speak alone."""
    styles = [
        {"color": "var(--bar)", "width": 2, "type": "solid"},
        {"color": "var(--high-fill)", "width": 2, "type": "dashed"},
    ]
    axis = {
        "axisLabel": {"color": "var(--soft)"},
        "axisLine": {"lineStyle": {"color": "var(--line)"}, "onZero": False},
        "axisTick": {"show": False},
    }
    return {
        "grid": {"left": 8, "right": 16, "top": 28 if len(named) > 1 else 10, "bottom": 12, "containLabel": True},
        "legend": {
            "show": len(named) > 1,
            "top": 0,
            "left": 0,
            "itemGap": 22,
            "textStyle": {"color": "var(--soft)"},
        },
        "tooltip": {"trigger": "axis", "formatter": "@agoTip"},
        "xAxis": axis
        | {
            "type": "value",
            "min": -HISTORY_MINUTES,
            "max": 0,
            "interval": 5,
            "splitLine": {"show": False},
            "axisLabel": {
                "color": "var(--soft)",
                "formatter": "@ago",
                "hideOverlap": True,
                "alignMinLabel": "left",
                "alignMaxLabel": "right",
            },
        },
        "yAxis": axis | {"type": "value", "min": 0, "splitLine": {"lineStyle": {"color": "var(--line)"}}},
        "series": [
            {
                "name": name,
                "type": "line",
                "symbol": "none" if len(ago) > 1 else "circle",
                "lineStyle": style,
                "itemStyle": {"color": style["color"]},
                "areaStyle": {"opacity": 0.12} if len(named) == 1 else None,
                "data": [[round(at, 3), value] for at, value in zip(ago, values, strict=True)],
            }
            for (name, values), style in zip(named.items(), styles, strict=False)
        ],
    }


class Foundations:
    """Broker, database, disk and versions."""

    def __init__(self) -> None:
        with panel("What it stands on"):
            self._place = Refreshable(_foundations)

    def tell(self, status: Status) -> None:
        """Show how they are."""
        self._place.show(_facts(status))


Facts = tuple[dict[str, str | int | float | None], dict[str, str], list[tuple[str, str]], list[tuple[str, ...]]]


def _facts(status: Status) -> Facts:
    broker, disk, database, jobs = status.broker, status.disk, status.database, status.jobs
    shown: dict[str, str | int | float | None] = {
        "broker": "connected" if broker.connected else "not connected",
        "database": database.kind if database else "does not answer",
        "disk free": _bytes(disk.free_bytes) if disk else None,
        "model that serves": status.model_version or "none yet",
        "up for": _span(status.uptime_seconds),
        "learnings under way": None if jobs is None else jobs.running,
        "open streams": status.streams,
    }
    said = {"dropped": broker.dropped, "queued": broker.queued, "clients": broker.clients}
    told = [f"{count:,} {name}" for name, count in said.items() if count is not None]
    security = "TLS" if broker.tls else "not encrypted"
    notes = {
        "broker": ", ".join([broker.address, f"MQTT {broker.mqtt_version}", security, *told]),
        "disk free": f"of {_bytes(disk.total_bytes)}" if disk else "",
        "learnings under way": "" if jobs is None else f"{jobs.queued} queued, {jobs.collecting} collecting",
    }
    if database:
        revision = database.schema_revision or NOTHING
        notes["database"] = f"{database.version}, {_bytes(database.size_bytes)}, schema {revision}"
    return shown, notes, sorted(status.versions.items()), [_process(one) for one in status.processes or ()]


def _process(one: ProcessView) -> tuple[str, ...]:
    state = "well" if one.ready else ", ".join(f"{part}: {why}" for part, why in one.errors.items())
    return (one.name, ", ".join(one.roles), ", ".join(one.leases) or NOTHING, number(one.events_per_second), state)


def _foundations(facts: Facts) -> None:
    shown, notes, versions, processes = facts
    stats(shown, notes)
    if processes:
        html.h3("Processes that share the work")
        table(["process", "does", "for all", "events a second", "is"], processes, label="Processes")
    with html.details().classes("ac-details"):
        html.summary("Versions")
        table(["part", "version"], versions, label="Versions")


def _seconds(value: float | None) -> str:
    if value is None:
        return NOTHING
    if value < _HOUR / 30:
        return f"{value:.1f} s"
    return f"{value / 60:.0f} min" if value < 2 * _HOUR else f"{value / _HOUR:.0f} h"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < _KILO:
            return f"{count:.0f} {unit}" if unit in ("B", "kB") else f"{count:.1f} {unit}"
        count /= _KILO
    return f"{count:.1f} TB"


def _span(seconds: float) -> str:
    if seconds < _HOUR:
        return f"{seconds // 60:.0f} min"
    return f"{seconds // _HOUR:.0f} h" if seconds < 2 * _DAY else f"{seconds // _DAY:.0f} days"
