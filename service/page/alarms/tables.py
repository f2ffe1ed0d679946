"""The tables of the alarms page: top alarms, floods, chattering and stale alarms, and the breakdown."""

from itertools import accumulate

from service.page.alarms.controls import shift_name
from service.page.alarms.rate import BANDS, band_name
from service.page.components.blocks import percent
from service.page.components.data_table import Cell, Column, Row, alarm, figure, link, moment, tag_cell
from service.page.texts import text
from wire.rest.alarm_metrics import ActiveAlarmView, AlarmMetricsReport, AlarmMetricsRow, AlarmMetricsView

_HOUR, _MINUTE = 3600, 60
_SORTS_LAST = 1e12
Names = dict[str, str]  # of machines, by site/machine
Zones = dict[str, str]


def top_columns() -> list[Column]:
    """Return the columns of the top alarms."""
    return [
        Column(text("alarms.column.alarm")),
        Column(text("alarms.column.share"), number=True, hint=text("alarms.column.share_hint")),
        Column(text("alarms.column.alarms"), number=True),
        Column(text("alarms.column.cumulative"), number=True, hint=text("alarms.column.cumulative_hint")),
        Column(text("alarms.column.machines"), number=True, hint=text("alarms.column.machines_hint")),
    ]


def top_rows(report: AlarmMetricsReport) -> list[Row]:
    """Return the ten most frequent codes with their shares and cumulative shares."""
    most = max((one.share for one in report.top), default=1.0)
    cumulative = accumulate(one.share for one in report.top)
    return [
        Row(
            str(one.code),
            [
                alarm(one.code, one.text, one.severity),
                {"text": percent(one.share), "sort": one.share, "bar": one.share / most},
                one.alarms,
                figure(share, percent(share)),
                one.machines,
            ],
        )
        for one, share in zip(report.top, cumulative, strict=True)
    ]


def duration_columns() -> list[Column]:
    """Return the columns of durations."""
    return [
        Column(text("alarms.column.alarm")),
        Column(text("alarms.column.median"), number=True, hint=text("alarms.column.median_hint")),
        Column(text("alarms.column.longest"), number=True, hint=text("alarms.column.longest_hint")),
        Column(text("alarms.column.active_time"), number=True, hint=text("alarms.column.active_time_hint")),
        Column(text("alarms.column.downtime"), number=True, hint=text("alarms.column.downtime_hint")),
    ]


def duration_rows(report: AlarmMetricsReport) -> list[Row]:
    """Return the codes with most downtime and longest active."""
    return [
        Row(
            str(one.code),
            [
                alarm(one.code, one.text, one.severity),
                _known_duration(one.median_seconds),
                _known_duration(one.longest_seconds),
                _known_duration(one.active_seconds),
                _known_duration(one.downtime_seconds),
            ],
        )
        for one in report.durations
    ]


def flood_columns() -> list[Column]:
    """Return the columns of floods."""
    return [
        Column(text("alarms.column.machine")),
        Column(text("alarms.column.start")),
        Column(text("alarms.column.duration"), number=True),
        Column(text("alarms.column.alarms"), number=True),
        _peak(),
        Column(text("alarms.column.top_alarm")),
    ]


def flood_rows(report: AlarmMetricsReport, names: Names, zones: Zones) -> list[Row]:
    """Return the floods, newest first."""
    rows = []
    for one in report.floods:
        key = f"{one.site}/{one.machine}"
        cells: list[Cell] = [
            _machine(key, names),
            moment(one.start, zones.get(key)),
            {"text": text("alarms.floods.ongoing"), "sort": _SORTS_LAST}
            if one.end is None
            else _duration((one.end - one.start).total_seconds()),
            one.alarms,
            one.peak_10min,
            {"text": one.top_text, "more": text("alarms.code", code=one.top_code)},
        ]
        rows.append(Row(f"{key} {one.start}", cells))
    return rows


def chatter_columns() -> list[Column]:
    """Return the columns of chattering alarms."""
    return [
        Column(text("alarms.column.machine")),
        Column(text("alarms.column.alarm")),
        Column(text("alarms.column.alarms"), number=True),
        Column(text("alarms.column.bursts"), number=True, hint=text("alarms.column.bursts_hint")),
        Column(text("alarms.column.last")),
    ]


def chatter_rows(report: AlarmMetricsReport, names: Names, zones: Zones) -> list[Row]:
    """Return the chattering codes, most alarms first."""
    rows = []
    for one in report.chatter:
        key = f"{one.site}/{one.machine}"
        cells: list[Cell] = [
            _machine(key, names),
            alarm(one.code, one.text, None),
            one.alarms,
            one.bursts,
            moment(one.last_at, zones.get(key)),
        ]
        rows.append(Row(f"{key} {one.code}", cells))
    return rows


def stale_columns() -> list[Column]:
    """Return the columns of stale alarms."""
    return [
        Column(text("alarms.column.machine")),
        Column(text("alarms.column.alarm")),
        Column(text("alarms.column.duration"), number=True),
        Column(text("alarms.column.start")),
        Column(text("alarms.column.last")),
        Column(text("alarms.column.alarms"), number=True),
    ]


def stale_rows(report: AlarmMetricsReport, names: Names, zones: Zones) -> list[Row]:
    """Return the stale alarms, longest first, and after them those of machines that do not report clears."""
    rows = _active_rows(report.stale, names, zones)
    for one in report.standing:
        key = f"{one.site}/{one.machine}"
        zone = zones.get(key)
        cells: list[Cell] = [
            _machine(key, names),
            alarm(one.code, one.text, None),
            _duration((one.last_at - one.since).total_seconds()),
            moment(one.since, zone),
            moment(one.last_at, zone),
            one.alarms,
        ]
        rows.append(Row(f"{key} {one.code} {one.since}", cells))
    return rows


def active_columns() -> list[Column]:
    """Return the columns of active alarms."""
    return stale_columns()[:4]


def active_rows(report: AlarmMetricsReport, names: Names, zones: Zones) -> list[Row]:
    """Return the alarms that are active at the end of the span, longest first."""
    return [Row(row.key, row.cells[:4]) for row in _active_rows(report.active, names, zones)]


def _active_rows(alarms: list[ActiveAlarmView], names: Names, zones: Zones) -> list[Row]:
    rows = []
    for one in alarms:
        key = f"{one.site}/{one.machine}"
        zone = zones.get(key)
        still: Cell = {"text": text("alarms.stale.active"), "sort": _SORTS_LAST}
        cells: list[Cell] = [
            _machine(key, names),
            alarm(one.code, one.text, None),
            _duration(one.seconds),
            moment(one.since, zone),
            still if one.until is None else moment(one.until, zone),
            1,
        ]
        rows.append(Row(f"{key} {one.code} {one.since} active", cells))
    return rows


def breakdown_columns() -> list[Column]:
    """Return the columns of the breakdown after the first."""
    return [
        Column(text("alarms.column.alarms"), number=True),
        Column(text("alarms.column.per_day"), number=True, hint=text("alarms.column.per_day_hint")),
        Column(text("alarms.column.band"), hint=text("alarms.column.band_hint")),
        _peak(),
        Column(text("alarms.column.floods"), number=True),
        Column(text("alarms.column.flood_time"), number=True, hint=text("alarms.column.flood_time_hint")),
        Column(text("alarms.column.chattering"), number=True, hint=text("alarms.column.chattering_hint")),
        Column(text("alarms.column.stale"), number=True, hint=text("alarms.column.stale_hint")),
        Column(text("alarms.column.active"), number=True, hint=text("alarms.column.active_hint")),
        Column(text("alarms.column.downtime"), number=True, hint=text("alarms.column.downtime_total_hint")),
    ]


def breakdown_rows(report: AlarmMetricsReport, names: Names) -> list[Row]:
    """Return a row for each group."""
    return [Row(str(place), [_group(row, names), *_metrics(row.metrics)]) for place, row in enumerate(report.rows)]


def _peak() -> Column:
    return Column(text("alarms.column.peak"), number=True, hint=text("alarms.column.peak_hint"))


def _machine(key: str, names: Names) -> Cell:
    return link(names.get(key, key), f"/machines/{key}", key if key in names else None)


def _group(row: AlarmMetricsRow, names: Names) -> Cell:
    if row.machine is not None:
        return _machine(f"{row.site}/{row.machine}", names)
    if row.site is not None:
        return link(row.site, f"/alarms?site={row.site}")
    if row.day is not None:
        return {"text": f"{row.day:%a %d %b}", "sort": row.day.isoformat()}
    if row.hour is not None:
        return {"text": text("alarms.hours", start=row.hour, end=(row.hour + 1) % 24), "sort": row.hour}
    return shift_name(row.shift) if row.shift is not None else None


def _metrics(metrics: AlarmMetricsView) -> list[Cell]:
    rate, band, share = metrics.alarms_per_day, metrics.band, metrics.flood_share
    return [
        metrics.alarms,
        figure(rate, "" if rate is None else f"{rate:,.1f}"),
        None if band is None else tag_cell(band_name(band), BANDS[band].sign, BANDS[band].tone, rate),
        metrics.peak_10min,
        metrics.floods,
        figure(share, "" if share is None else f"{100 * share:.1f} %"),
        metrics.chattering,
        metrics.standing + (metrics.stale or 0),
        metrics.active,
        _known_duration(metrics.downtime_seconds),
    ]


def _known_duration(seconds: float | None) -> Cell:
    return None if seconds is None else _duration(seconds)


def _duration(seconds: float) -> Cell:
    words = f"{seconds / 60:.0f} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.0f} h"
    if seconds < 2 * _MINUTE:
        words = f"{seconds:.0f} s"
    return {"text": words, "sort": seconds}
