"""The status of the service: errors and warnings, ingest figures, and infrastructure."""

from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import html

from service.page.components.blocks import NOTHING, Stat, number, panel, stats, table
from service.page.components.elements import Chart
from service.page.components.refreshable import Refreshable
from service.page.feeds import HISTORY_MINUTES, StatusHistory
from service.page.texts import text
from wire.rest.health import ProcessView, Status

_KILO = 1000
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_SHORT = 2  # units: 119 s, then 2 min
Stats = dict[str, Stat | tuple[Stat, str]]


class StatusBanner:
    """Errors and warnings, or that all is well."""

    def __init__(self) -> None:
        self._place = Refreshable(_banner)

    def show(self, history: StatusHistory) -> None:
        """Show the newest status."""
        status = history.samples[-1].status if history.samples else None
        errors = dict(status.errors) if status else {}
        if history.error:
            errors[text("health.part.page")] = text("health.no_status", error=history.error)
        has_model = status is not None and status.model_version is not None
        self._place.show((errors, dict(status.warnings) if status else {}, has_model))


def _banner(shown: tuple[dict[str, str], dict[str, str], bool]) -> None:
    errors, warnings, has_model = shown
    fine = text("health.ok_with_warnings") if warnings else text("health.ok")
    with html.div(role="status").classes("ac-state"):
        for part, why in errors.items():
            _message("✕", text("health.error", part=part.replace("_", " ")), why, "ac-bad")
        for part, why in warnings.items():
            _message("◆", text("health.warning", part=part.replace("_", " ")), why, "ac-warn")
        if not errors:
            with html.p().classes("ac-fine"):
                html.span("✓", **{"aria-hidden": "true"}).classes("ac-good")
                html.span(fine if has_model else text("health.ok_no_model"))


def _message(sign: str, title: str, why: str, style: str) -> None:
    with html.p().classes(style):
        html.span(f"{sign} ", **{"aria-hidden": "true"})
        html.strong(title)
        html.span(why if why.endswith((".", "!", "?")) else f"{why}.")


class Ingest:
    """Event rate and ingest lag over the last minutes."""

    def __init__(self) -> None:
        with panel(text("health.ingest.title"), note=text("health.ingest.note", minutes=HISTORY_MINUTES)):
            self._stats: Refreshable[Stats] = Refreshable(stats)
            html.h3(text("health.ingest.rate_chart"))
            self._rate = Chart({}, label=text("health.ingest.rate_chart")).classes("ac-low")
            self._lag_title: Refreshable[str] = Refreshable(html.h3)
            self._lag = Chart({}, label=text("health.ingest.title")).classes("ac-low")

    def show(self, history: StatusHistory) -> None:
        """Show the samples of the last minutes."""
        status, now = history.samples[-1].status, history.samples[-1].at
        samples = [one.status.ingest for one in history.samples]
        minutes = [(one.at - now) / _MINUTE for one in history.samples]
        ingest = samples[-1]
        rate = number(ingest.per_second_1m)
        self._stats.show(
            {
                text("health.ingest.rate"): (
                    rate,
                    text("health.ingest.rate_note", rate=number(ingest.per_second_15m)),
                ),
                text("health.ingest.stored"): f"{status.counts.get('stored', 0):,}",
                text("health.ingest.median_lag"): _duration(ingest.lag_p50_seconds),
                text("health.ingest.p95_lag"): _duration(ingest.lag_p95_seconds),
                text("health.ingest.backfilled"): (
                    f"{ingest.backfilled:,}",
                    text("health.ingest.backfilled_note"),
                ),
            }
        )
        self._rate.show(
            _line_chart(minutes, {text("health.ingest.rate_series"): [one.per_second_1m for one in samples]}),
            label=text("health.ingest.rate_label", rate=rate),
        )
        seconds, unit = _unit(max((one.lag_p95_seconds or 0.0 for one in samples), default=0.0))
        medians = [_scaled(one.lag_p50_seconds, seconds) for one in samples]
        p95s = [_scaled(one.lag_p95_seconds, seconds) for one in samples]
        self._lag_title.show(text("health.ingest.lag_chart", unit=unit))
        self._lag.show(
            _line_chart(
                minutes,
                {
                    text("health.ingest.median_series", unit=unit): medians,
                    text("health.ingest.p95_series", unit=unit): p95s,
                },
            ),
            label=text("health.ingest.lag_label", lag=_duration(ingest.lag_p95_seconds)),
        )


def _unit(seconds: float) -> tuple[int, str]:
    """Return the unit for durations up to this one: its seconds and its name."""
    if seconds < _SHORT * _MINUTE:
        return 1, text("health.unit.s")
    if seconds < _SHORT * _HOUR:
        return _MINUTE, text("health.unit.min")
    return _HOUR, text("health.unit.h")


def _scaled(value: float | None, seconds: int) -> float | None:
    return None if value is None else round(value / seconds, 3)


def _duration(value: float | None) -> str:
    if value is None:
        return NOTHING
    seconds, unit = _unit(value)
    return f"{value / seconds:.{1 if seconds == 1 else 0}f} {unit}"


def _line_chart(ago: list[float], named: Mapping[str, Sequence[float | None]]) -> dict[str, Any]:
    """Return a chart of lines over the last minutes; the second line is dashed, so that colour is not needed."""
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


class Infrastructure:
    """Broker, database, disk, processes and versions."""

    def __init__(self) -> None:
        with panel(text("health.infrastructure.title")):
            self._stats: Refreshable[Stats] = Refreshable(stats)
            self._processes = Refreshable(_processes)
            with html.details().classes("ac-details"):
                html.summary(text("health.versions.title"))
                self._versions = Refreshable(_versions)

    def show(self, status: Status) -> None:
        """Show the newest status."""
        self._stats.show(_infrastructure(status))
        self._processes.show([_process(one) for one in status.processes or ()])
        self._versions.show(sorted(status.versions.items()))


def _infrastructure(status: Status) -> Stats:
    broker, disk, database, jobs = status.broker, status.disk, status.database, status.jobs
    connected = broker.connected
    found: Stats = {
        text("health.infrastructure.broker"): (
            text("health.infrastructure.connected") if connected else text("health.infrastructure.not_connected"),
            _broker_note(status),
        ),
        text("health.infrastructure.database"): text("health.infrastructure.no_database"),
        text("health.infrastructure.disk"): None,
        text("health.infrastructure.model"): status.model_version or text("health.infrastructure.no_model"),
        text("health.infrastructure.uptime"): _uptime(status.uptime_seconds),
        text("health.infrastructure.jobs"): None,
        text("health.infrastructure.streams"): status.streams,
    }
    if database:
        found[text("health.infrastructure.database")] = (
            database.kind,
            text(
                "health.infrastructure.database_note",
                version=database.version,
                size=_bytes(database.size_bytes),
                revision=database.schema_revision or NOTHING,
            ),
        )
    if disk:
        total = text("health.infrastructure.disk_note", size=_bytes(disk.total_bytes))
        found[text("health.infrastructure.disk")] = (_bytes(disk.free_bytes), total)
    if jobs:
        waiting = text("health.infrastructure.jobs_note", queued=jobs.queued, collecting=jobs.collecting)
        found[text("health.infrastructure.jobs")] = (jobs.running, waiting)
    return found


def _broker_note(status: Status) -> str:
    broker = status.broker
    parts = [
        broker.address,
        text("health.infrastructure.mqtt", version=broker.mqtt_version),
        text("health.infrastructure.tls") if broker.tls else text("health.infrastructure.no_tls"),
    ]
    if broker.dropped is not None:
        parts.append(text("health.infrastructure.dropped", count=broker.dropped))
    if broker.queued is not None:
        parts.append(text("health.infrastructure.queued", count=broker.queued))
    if broker.clients is not None:
        parts.append(text("health.infrastructure.clients", count=broker.clients))
    return ", ".join(parts)


def _process(one: ProcessView) -> tuple[str, ...]:
    errors = ", ".join(f"{part}: {why}" for part, why in one.errors.items())
    state = text("health.processes.ok") if one.ready else errors
    return (one.name, ", ".join(one.roles), ", ".join(one.leases) or NOTHING, number(one.events_per_second), state)


def _processes(rows: list[tuple[str, ...]]) -> None:
    if not rows:
        return
    title = text("health.processes.title")
    html.h3(title)
    head = [
        text("health.processes.name"),
        text("health.processes.roles"),
        text("health.processes.leases"),
        text("health.processes.rate"),
        text("health.processes.state"),
    ]
    table(head, rows, label=title)


def _versions(rows: list[tuple[str, str]]) -> None:
    head = [text("health.versions.part"), text("health.versions.version")]
    table(head, rows, label=text("health.versions.title"))


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < _KILO:
            return f"{count:.0f} {unit}" if unit in ("B", "kB") else f"{count:.1f} {unit}"
        count /= _KILO
    return f"{count:.1f} TB"


def _uptime(seconds: float) -> str:
    if seconds < _SHORT * _DAY:
        scale, unit = (_MINUTE, text("health.unit.min")) if seconds < _HOUR else (_HOUR, text("health.unit.h"))
        return f"{seconds // scale:.0f} {unit}"
    return text("health.infrastructure.days", count=f"{seconds // _DAY:.0f}")
