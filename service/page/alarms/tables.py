"""The tables of the alarms page: the commonest codes, lines of figures, floods, chatter, standing alarms."""

from itertools import accumulate

from service.page.alarms.rate import BANDS
from service.page.components.blocks import percent
from service.page.components.data_table import Cell, Column, Row, alarm, figure, link, moment, tag_cell
from wire.rest.alarm_metrics import AlarmMetricsReport, AlarmMetricsRow, AlarmMetricsView

TOP = [
    Column("alarm"),
    Column("share", number=True, hint="Of all alarms of the span."),
    Column("alarms", number=True),
    Column("together", number=True, hint="This one and all above it, as a share of all alarms."),
    Column("machines", number=True, hint="How many machines raised it."),
]
FLOODS = [
    Column("machine"),
    Column("began"),
    Column("lasted", number=True),
    Column("alarms", number=True),
    Column("in 10 min", number=True, hint="Most alarms within ten minutes."),
    Column("mostly"),
]
CHATTER = [
    Column("machine"),
    Column("alarm"),
    Column("alarms", number=True),
    Column("bursts", number=True, hint="How often it chattered; a minute without it ends a burst."),
    Column("last"),
]
STANDING = [
    Column("machine"),
    Column("alarm"),
    Column("lasted", number=True),
    Column("since"),
    Column("last"),
    Column("alarms", number=True),
]
LINE_FIGURES = [
    Column("alarms", number=True),
    Column("a day", number=True, hint="Alarms a machine raises in 24 watched hours."),
    Column("band", hint="After ISA-18.2."),
    Column("peak", number=True, hint="Most alarms of one machine within ten minutes."),
    Column("floods", number=True),
    Column("flooded", number=True, hint="Share of the watched time that was a flood."),
    Column("chattering", number=True, hint="Alarms that were one of three or more of their code within a minute."),
    Column("standing", number=True, hint="Codes raised for more than 24 hours without a pause of an hour."),
]
_HOUR = 3600
Names = dict[str, str]
Zones = dict[str, str]


def top(found: AlarmMetricsReport) -> list[Row]:
    """Return the ten commonest codes with their shares, and what they come to together."""
    most = max((one.share for one in found.top), default=1.0)
    together = accumulate(one.share for one in found.top)
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
        for one, share in zip(found.top, together, strict=True)
    ]


def lines(found: AlarmMetricsReport, names: Names) -> list[Row]:
    """Return a row for each line."""
    return [
        Row(str(place), [_subject(line, names), *_figures(line.metrics)]) for place, line in enumerate(found.rows)
    ]


def floods(found: AlarmMetricsReport, names: Names, zones: Zones) -> list[Row]:
    """Return the floods, newest first."""
    rows = []
    for one in found.floods:
        key = f"{one.site}/{one.machine}"
        seconds = None if one.end is None else (one.end - one.start).total_seconds()
        lasted: Cell = {"text": "goes on", "sort": float("1e12")} if seconds is None else _lasted(seconds)
        mostly: Cell = {"text": one.top_text, "more": f"code {one.top_code}"}
        began = moment(one.start, zones.get(key))
        rows.append(
            Row(f"{key} {one.start}", [_machine(key, names), began, lasted, one.alarms, one.peak_10min, mostly])
        )
    return rows


def chatter(found: AlarmMetricsReport, names: Names, zones: Zones) -> list[Row]:
    """Return the chattering codes, most alarms first."""
    rows = []
    for one in found.chatter:
        key = f"{one.site}/{one.machine}"
        said = alarm(one.code, one.text, None)
        last = moment(one.last_at, zones.get(key))
        rows.append(Row(f"{key} {one.code}", [_machine(key, names), said, one.alarms, one.bursts, last]))
    return rows


def standing(found: AlarmMetricsReport, names: Names, zones: Zones) -> list[Row]:
    """Return the standing alarms, the longest first."""
    rows = []
    for one in found.standing:
        key, zone = f"{one.site}/{one.machine}", zones.get(f"{one.site}/{one.machine}")
        lasted = _lasted((one.last_at - one.since).total_seconds())
        said, since, last = alarm(one.code, one.text, None), moment(one.since, zone), moment(one.last_at, zone)
        rows.append(
            Row(f"{key} {one.code} {one.since}", [_machine(key, names), said, lasted, since, last, one.alarms])
        )
    return rows


def _machine(key: str, names: Names) -> Cell:
    return link(names.get(key, key), f"/machines/{key}", key if key in names else None)


def _subject(line: AlarmMetricsRow, names: Names) -> Cell:
    if line.machine is not None:
        return _machine(f"{line.site}/{line.machine}", names)
    if line.site is not None:
        return link(line.site, f"/alarms?site={line.site}")
    if line.day is not None:
        return {"text": f"{line.day:%a %d %b}", "sort": line.day.isoformat()}
    if line.hour is not None:
        return {"text": f"{line.hour:02d}:00 to {(line.hour + 1) % 24:02d}:00", "sort": line.hour}
    return line.shift


def _figures(told: AlarmMetricsView) -> list[Cell]:
    rate, band = told.alarms_per_day, None
    if told.band is not None:
        sign, tone, _ = BANDS[told.band]
        band = tag_cell(told.band.value, sign, tone, rate)
    share = told.flood_share
    return [
        told.alarms,
        figure(rate, "" if rate is None else f"{rate:,.1f}"),
        band,
        told.peak_10min,
        told.floods,
        figure(share, "" if share is None else f"{100 * share:.1f} %"),
        told.chattering,
        told.standing,
    ]


def _lasted(seconds: float) -> Cell:
    text = f"{seconds / 60:.0f} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.0f} h"
    return {"text": text, "sort": seconds}
