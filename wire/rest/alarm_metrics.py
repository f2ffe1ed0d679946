"""Alarm metrics (ISA-18.2, EEMUA 191)."""

from datetime import date
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from wire.enums import AlarmMetricsGrouping, BucketLength, RateBand
from wire.forecasts import Share
from wire.identity import Identifier
from wire.timestamps import UtcDatetime


class AlarmMetricsView(BaseModel):
    """Alarm metrics of a time span; null where not defined."""

    alarms: int
    machines: int = Field(description="Machines that raised any of them.")
    machine_days: float = Field(
        description="Monitored time in machine-days: from the first to the last sign of each machine. "
        "Rates and shares of time refer to this."
    )
    alarms_per_day: float | None = Field(
        description="Alarms per machine-day; null if monitored for less than half an hour."
    )
    band: RateBand | None = Field(
        description="Its band after ISA-18.2: acceptable up to 150 a day, excessive from 300, manageable in "
        "between. The standard counts what one operator gets; here each machine stands for one. Null for a code."
    )
    peak_10min: int = Field(description="Most alarms of one machine within ten minutes.")
    floods: int | None = Field(
        description="Floods that touch the span: on once more than 10 alarms of a machine came in ten minutes, "
        "over once fewer than 5 did. Null for a code."
    )
    flood_share: Share | None = Field(
        description="Share of the monitored time that was in a flood. Null for a code."
    )
    alarms_in_floods: int
    chattering: int = Field(description="Alarms that were one of three or more of their code within a minute.")
    standing: int = Field(
        description="Standing alarms: codes that a machine raised again and again for more than 24 hours without "
        "a pause of more than an hour. They stand for the standard's stale alarms where a machine does not report "
        "when an alarm clears."
    )
    stale: int | None = Field(
        default=None,
        description="Alarms that were active for more than 24 hours. Like the next two null where no machine "
        "reports clears or stops, and in rows by code or time.",
    )
    active: int | None = Field(
        default=None, description="Alarms that are active at the end of the span, as far as it is known."
    )
    downtime_seconds: float | None = Field(
        default=None, description="Time in which machines stood, from a stop reason to its end."
    )


class AlarmMetricsRow(BaseModel):
    """A row of alarm metrics; only the keys that rows are grouped by are set."""

    site: Identifier | None
    machine: Identifier | None
    shift: str | None
    code: int | None
    text: str | None = Field(description="What the code means.")
    severity: str | None = Field(description="Severity of the code.")
    day: date | None = Field(description="In the plant's calendar.")
    hour: int | None = Field(description="Of the day, by the plant's clock.")
    metrics: AlarmMetricsView


class TopCodeView(BaseModel):
    """One of the most frequent codes."""

    code: int
    text: str
    severity: str
    alarms: int
    share: Share = Field(description="Of all alarms of the span.")
    machines: int = Field(description="Machines that raised it.")
    median_seconds: float | None = Field(
        default=None,
        description="From raise to clear, of alarms that were raised in the span and cleared; null if unknown.",
    )
    longest_seconds: float | None = Field(default=None, description="The longest of them.")
    active_seconds: float | None = Field(
        default=None, description="Time in the span in which it was active, summed over machines; null if unknown."
    )
    downtime_seconds: float | None = Field(
        default=None, description="Time in the span in which it was the reason of a stop; null if unknown."
    )


class ActiveAlarmView(BaseModel):
    """An alarm and how long it was active."""

    site: Identifier
    machine: Identifier
    code: int
    text: str
    severity: str
    since: UtcDatetime = Field(description="When it was raised; at most 31 days before the span.")
    until: UtcDatetime | None = Field(
        description="When it was cleared, or when a gap began; null if it is active at the end of the span."
    )
    seconds: float


class FloodView(BaseModel):
    """An alarm flood."""

    site: Identifier
    machine: Identifier
    start: UtcDatetime = Field(description="The first of the alarms that made it a flood.")
    end: UtcDatetime | None = Field(
        description="When fewer than 5 alarms were younger than ten minutes; null if it goes on at `until`."
    )
    alarms: int
    peak_10min: int = Field(description="Most alarms within ten minutes.")
    top_code: int = Field(description="The code that came most often in it.")
    top_text: str


class ChatterView(BaseModel):
    """A code of a machine that comes three times or more within a minute."""

    site: Identifier
    machine: Identifier
    code: int
    text: str
    bursts: int = Field(description="How often it chattered; a minute without it ends a burst.")
    alarms: int = Field(description="How many alarms that made.")
    last_at: UtcDatetime


class StandingAlarmView(BaseModel):
    """A code that a machine raised for more than 24 hours without a pause of more than an hour."""

    site: Identifier
    machine: Identifier
    code: int
    text: str
    since: UtcDatetime = Field(
        description="The first of them; if it began more than 26 hours before the span, later."
    )
    last_at: UtcDatetime
    alarms: int


class BucketView(BaseModel):
    """The alarms in ``[start, end)``; the first and the last bucket may be cut short by the span."""

    start: UtcDatetime
    end: UtcDatetime
    alarms: int
    alarms_per_day: float | None = Field(
        description="Per machine-day, comparable with the bands; null if monitored for too short."
    )


class RateView(BaseModel):
    """The alarm rate over the span: hours up to seven days, days beyond."""

    bucket: BucketLength
    time_zone: str = Field(description="Whose hours and days: the time zone of most of the machines.")
    buckets: list[BucketView]


class BandLimits(BaseModel):
    """Limits of the ISA-18.2 bands, in alarms per day."""

    acceptable_up_to: float
    excessive_from: float


class ShiftView(BaseModel):
    """A shift, in each plant's own time; it lasts until the next one starts."""

    shift: str
    start: str = Field(description="HH:MM", examples=["06:00"])


class AlarmMetricsCounts(BaseModel):
    """Total lengths of the lists."""

    rows: int
    floods: int
    chatter: int
    standing: int
    stale: int = 0
    active: int = 0


_EXAMPLE_METRICS: dict[str, Any] = {
    "alarms": 1204,
    "machines": 1,
    "machine_days": 6.98,
    "alarms_per_day": 172.5,
    "band": "manageable",
    "peak_10min": 17,
    "floods": 4,
    "flood_share": 0.0062,
    "alarms_in_floods": 61,
    "chattering": 38,
    "standing": 1,
    "stale": 1,
    "active": 2,
    "downtime_seconds": 5400.0,
}


_EXAMPLE_ACTIVE: dict[str, Any] = {
    "site": "padova",
    "machine": "filler-1",
    "code": 8,
    "text": "Reel nearly empty",
    "severity": "low",
    "since": "2026-11-14T04:10:00.000Z",
    "until": None,
    "seconds": 186_600.0,
}


class AlarmMetricsReport(BaseModel):
    """Alarm metrics of a time span; lists hold the worst or newest, ``counts`` their total lengths."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "since": "2026-11-09T08:00:00.000Z",
                    "until": "2026-11-16T08:00:00.000Z",
                    "by": "machine",
                    "shift": None,
                    "machines": 1,
                    "excluded": 0,
                    "truncated": 0,
                    "limits": {"acceptable_up_to": 150, "excessive_from": 300},
                    "shifts": [{"shift": "early", "start": "06:00"}],
                    "total": _EXAMPLE_METRICS,
                    "rows": [
                        {
                            "site": "padova",
                            "machine": "filler-1",
                            "shift": None,
                            "code": None,
                            "text": None,
                            "severity": None,
                            "day": None,
                            "hour": None,
                            "metrics": _EXAMPLE_METRICS,
                        }
                    ],
                    "top": [
                        {
                            "code": 139,
                            "text": "Film torn",
                            "severity": "high",
                            "alarms": 402,
                            "share": 0.3339,
                            "machines": 1,
                            "median_seconds": 41.2,
                            "longest_seconds": 3660.0,
                            "active_seconds": 25_020.5,
                            "downtime_seconds": 5400.0,
                        }
                    ],
                    "durations": [],
                    "floods": [
                        {
                            "site": "padova",
                            "machine": "filler-1",
                            "start": "2026-11-15T21:04:11.000Z",
                            "end": "2026-11-15T21:22:40.000Z",
                            "alarms": 19,
                            "peak_10min": 17,
                            "top_code": 139,
                            "top_text": "Film torn",
                        }
                    ],
                    "chatter": [
                        {
                            "site": "padova",
                            "machine": "filler-1",
                            "code": 26,
                            "text": "Door open",
                            "bursts": 9,
                            "alarms": 38,
                            "last_at": "2026-11-16T05:12:03.000Z",
                        }
                    ],
                    "standing": [
                        {
                            "site": "padova",
                            "machine": "filler-1",
                            "code": 8,
                            "text": "Reel nearly empty",
                            "since": "2026-11-12T04:10:00.000Z",
                            "last_at": "2026-11-14T17:55:00.000Z",
                            "alarms": 211,
                        }
                    ],
                    "stale": [_EXAMPLE_ACTIVE],
                    "active": [_EXAMPLE_ACTIVE],
                    "counts": {"rows": 1, "floods": 4, "chatter": 1, "standing": 1, "stale": 1, "active": 1},
                    "rate": {
                        "bucket": "hour",
                        "time_zone": "Europe/Rome",
                        "buckets": [
                            {
                                "start": "2026-11-09T08:00:00.000Z",
                                "end": "2026-11-09T09:00:00.000Z",
                                "alarms": 7,
                                "alarms_per_day": 168.0,
                            }
                        ],
                    },
                }
            ]
        }
    )

    since: UtcDatetime
    until: UtcDatetime
    by: AlarmMetricsGrouping
    shift: str | None = Field(description="The requested shift; null for all.")
    machines: int = Field(description="Machines in the query.")
    excluded: int = Field(description="Alarms that were shelved; not in any metric here.")
    truncated: int = Field(default=0, description="Machines with so many alarms that only the newest are counted.")
    limits: BandLimits
    shifts: list[ShiftView] = Field(description="All shifts, earliest first.")
    total: AlarmMetricsView
    rows: list[AlarmMetricsRow] = Field(
        description="At most 1000: by time if grouped by time, else most alarms first."
    )
    top: list[TopCodeView] = Field(description="The ten most frequent codes.")
    durations: list[TopCodeView] = Field(
        default=[],
        description="The ten codes with most downtime, then with the longest time active; empty where unknown.",
    )
    floods: list[FloodView] = Field(description="The newest 100.")
    chatter: list[ChatterView] = Field(description="The 100 with most alarms.")
    standing: list[StandingAlarmView] = Field(description="The 100 longest.")
    stale: list[ActiveAlarmView] = Field(
        default=[], description="Alarms that were active for more than 24 hours, the 100 longest."
    )
    active: list[ActiveAlarmView] = Field(
        default=[], description="Alarms that are active at the end of the span, the 100 longest."
    )
    counts: AlarmMetricsCounts
    rate: RateView
