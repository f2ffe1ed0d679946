"""Compute alarm metrics: rate and band, top codes, floods, chattering and standing alarms."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from threading import BoundedSemaphore
from zoneinfo import ZoneInfo

import numpy as np

from forecasting.series import AlarmSeries
from service.alarm_metrics.activity import Activity, CodeActivity, active_views, read_activity
from service.alarm_metrics.chatter import LEAD
from service.alarm_metrics.findings import (
    Bucket,
    machine_chatter,
    machine_floods,
    machine_standing,
)
from service.alarm_metrics.models import (
    AlarmCounts,
    ExcludedSpan,
    MachineAlarms,
    count_by_code,
    count_by_group,
    exclude,
)
from service.alarm_metrics.time_bins import TimeBins, by_daily_times, by_days, by_hours
from service.errors import InputRejected, Unavailable
from service.machines.catalogue import Catalogue
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.models import Agent, Machine, MachineReader, chosen_machines, chosen_span
from wire.clock import PlantClock
from wire.enums import AlarmMetricsGrouping, BucketLength
from wire.rest.alarm_metrics import ActiveAlarmView, ChatterView, FloodView, StandingAlarmView, TopCodeView
from wire.timestamps import EARLIEST, from_us, to_us
from wire.zones import common_zone

DEFAULT_SPAN = timedelta(days=7)
MAX_SPAN = timedelta(days=92)
MAX_HOURLY_SPAN = timedelta(days=7)  # daily buckets for longer spans
MAX_READ = 1_000_000  # alarms of one machine
QUEUE_TIMEOUT_S = 5.0  # time that a request waits while others are computed
_MAX_CONCURRENT = 2
_HOURS = [time(hour) for hour in range(24)]


@dataclass(frozen=True)
class AlarmMetricsQuery:
    """Filter and grouping; by default all machines and the last seven days."""

    by: AlarmMetricsGrouping = AlarmMetricsGrouping.MACHINE
    site: str | None = None
    machine: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    shift: str | None = None


@dataclass(frozen=True)
class GroupKey:
    """Key of a row: the field that rows are grouped by, with a machine also its site."""

    site: str | None = None
    machine: str | None = None
    shift: str | None = None
    code: int | None = None
    day: date | None = None
    hour: int | None = None


@dataclass(frozen=True)
class AlarmMetrics:
    """The metrics of a span.

    ``excluded`` counts alarms that were shelved, ``truncated`` the machines with so many alarms that only the
    newest were read.
    """

    since: datetime
    until: datetime
    machines: int
    excluded: int
    total: AlarmCounts
    rows: list[tuple[GroupKey, AlarmCounts]]
    codes: list[TopCodeView]
    floods: list[FloodView]
    chatter: list[ChatterView]
    standing: list[StandingAlarmView]
    stale: list[ActiveAlarmView]
    active: list[ActiveAlarmView]
    bucket: BucketLength
    time_zone: str
    rate: list[Bucket]
    truncated: int = 0


def nothing_excluded(_since: datetime, _until: datetime) -> Collection[ExcludedSpan]:
    """Return no spans."""
    return ()


@dataclass(frozen=True)
class AlarmMetricsService:
    """Reads one machine at a time, so that a long span of a large fleet needs little memory."""

    machines: MachineReader
    events: EventStore
    catalogue: CatalogueStore
    clock: PlantClock
    shifts: Mapping[str, time]
    excluded_spans: Callable[[datetime, datetime], Collection[ExcludedSpan]] = nothing_excluded
    max_read: int = MAX_READ
    queue_timeout: float = QUEUE_TIMEOUT_S
    slots: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(_MAX_CONCURRENT))

    def compute(self, query: AlarmMetricsQuery) -> AlarmMetrics:
        """Return the metrics of a query; only two are computed at a time, because they may need much memory."""
        if not self.slots.acquire(timeout=self.queue_timeout):
            raise Unavailable("Too many alarm metrics are being computed. Retry, or choose a shorter time span.")
        try:
            return self._compute(query)
        finally:
            self.slots.release()

    def _compute(self, query: AlarmMetricsQuery) -> AlarmMetrics:
        since, until = chosen_span(
            query.since, query.until, now=self.clock.now(), usual=DEFAULT_SPAN, longest=MAX_SPAN
        )
        grouping = _Grouping(query, since, until, self.shifts)
        machines = chosen_machines(self.machines, query.site, query.machine)
        zone = common_zone(machine.time_zone for machine in machines)
        totals = _Accumulator(grouping, zone, self.catalogue.entries())
        agents = self.machines.agents()
        lead = max(since - LEAD, EARLIEST)
        excluded_spans = self.excluded_spans(lead, until)
        for machine in machines:
            series = self.events.newest(machine, lead, until, self.max_read + 1)
            if len(series) > self.max_read:
                series = AlarmSeries(series.times[1:], series.codes[1:])
                totals.truncated += 1
            counted = exclude(series, machine.id, excluded_spans)
            bins = grouping.bins(machine)
            if counted is not series:
                totals.excluded += int((bins.bin_index(series.times) >= 0).sum())
                totals.excluded -= int((bins.bin_index(counted.times) >= 0).sum())
            monitored = self._monitored_span(machine, agents.get(machine.id))
            activity = read_activity(
                self.events, machine, since, until, known_until=from_us(monitored[1]), most=self.max_read
            )
            totals.add(
                machine, MachineAlarms(counted), bins, monitored, activity.without(machine.id, excluded_spans)
            )
        return totals.result(len(machines))

    def _monitored_span(self, machine: Machine, agent: Agent | None) -> tuple[int, int]:
        """Return the span between the first and the last sign of a machine: alarms or agent messages.

        Outside of it alarms are unknown, and a rate over that time would be too low.
        """
        first, last = self.events.first_at(machine), self.events.last_at(machine)
        seen = [at for at in (first, last) if at is not None]
        if agent is not None:
            seen += [agent.since or agent.last_seen_at, agent.last_seen_at]
        return (to_us(min(seen)), to_us(max(seen))) if seen else (0, 0)


def _longest_first(alarm: ActiveAlarmView) -> tuple[object, ...]:
    return (-alarm.seconds, alarm.site, alarm.machine, alarm.code)


class _Grouping:
    """Splits the span into time bins in the time zone of each machine; cached by time zone."""

    def __init__(
        self, query: AlarmMetricsQuery, since: datetime, until: datetime, shifts: Mapping[str, time]
    ) -> None:
        if query.shift is not None and query.shift not in shifts:
            raise InputRejected(f"Shift {query.shift!r} does not exist; the shifts are {', '.join(shifts)}.")
        self.by, self.since, self.until = query.by, since, until
        self._shift, self._shifts = query.shift, shifts
        self._names = list(shifts)
        self._bins: dict[str, TimeBins] = {}

    def bins(self, machine: Machine) -> TimeBins:
        """Return the bins that are counted, one group per row."""
        if machine.time_zone not in self._bins:
            self._bins[machine.time_zone] = self._split(ZoneInfo(machine.time_zone))
        return self._bins[machine.time_zone]

    def key(self, machine: Machine, group: int) -> GroupKey:
        """Return the key of the row that a group of a machine belongs to."""
        match self.by:
            case AlarmMetricsGrouping.SITE:
                return GroupKey(site=machine.id.site)
            case AlarmMetricsGrouping.MACHINE:
                return GroupKey(site=machine.id.site, machine=machine.id.machine)
            case AlarmMetricsGrouping.SHIFT:
                return GroupKey(shift=self._names[group])
            case AlarmMetricsGrouping.DAY:
                return GroupKey(day=date.fromordinal(group))
            case AlarmMetricsGrouping.HOUR:
                return GroupKey(hour=group)
            case AlarmMetricsGrouping.CODE:
                return GroupKey(code=group)

    def sort_key(self, row: tuple[GroupKey, AlarmCounts]) -> tuple[object, ...]:
        """Return the sort key of a row: by time if grouped by time, otherwise most alarms first."""
        key, counts = row
        if key.shift is not None:
            return (self._names.index(key.shift),)
        if key.day is not None or key.hour is not None:
            return (key.day or date.min, key.hour or 0)
        return (-counts.alarms, key.site or "", key.machine or "", key.code or 0)

    def _split(self, zone: ZoneInfo) -> TimeBins:
        span = (self.since, self.until)
        shifts = by_daily_times(*span, zone, list(self._shifts.values()))
        if self.by is AlarmMetricsGrouping.SHIFT:
            bins = shifts
        elif self.by is AlarmMetricsGrouping.DAY:
            bins = by_days(*span, zone)
        elif self.by is AlarmMetricsGrouping.HOUR:
            bins = by_daily_times(*span, zone, _HOURS)
        else:
            bins = TimeBins.whole(to_us(self.since), to_us(self.until))
        return bins if self._shift is None else bins.within(shifts.for_group(self._names.index(self._shift)))


class _Accumulator:
    """Sums up the metrics of machines."""

    def __init__(self, grouping: _Grouping, zone: str, catalogue: Catalogue) -> None:
        span = (grouping.since, grouping.until)
        short = grouping.until - grouping.since <= MAX_HOURLY_SPAN
        self._grouping, self._zone, self._catalogue = grouping, zone, catalogue
        self._length = BucketLength.HOUR if short else BucketLength.DAY
        bins = by_hours(*span, ZoneInfo(zone)) if short else by_days(*span, ZoneInfo(zone))
        self._buckets = TimeBins(bins.starts, bins.ends, np.arange(len(bins.starts)))
        self._bucket_alarms = np.zeros(len(bins.starts), dtype=np.int64)
        self._bucket_monitored = np.zeros(len(bins.starts), dtype=np.int64)
        self._total = AlarmCounts()
        self._rows: dict[GroupKey, AlarmCounts] = {}
        self._codes: Counter[int] = Counter()
        self._code_machines: Counter[int] = Counter()
        self._floods: list[FloodView] = []
        self._chatter: list[ChatterView] = []
        self._standing: list[StandingAlarmView] = []
        self._stale: list[ActiveAlarmView] = []
        self._active: list[ActiveAlarmView] = []
        self._activity = CodeActivity()
        self.excluded = self.truncated = 0

    def add(
        self,
        machine: Machine,
        alarms: MachineAlarms,
        bins: TimeBins,
        monitored: tuple[int, int],
        activity: Activity,
    ) -> None:
        """Add a machine."""
        groups = count_by_group(alarms, bins.ungrouped(), monitored)
        total = next((counts for _, counts in groups), AlarmCounts())
        total = self._with_activity(total, machine, bins, activity)
        self._total += total
        for group, row_counts in self._groups(alarms, bins, monitored, total):
            key = self._grouping.key(machine, group)
            self._rows[key] = self._rows[key] + row_counts if key in self._rows else row_counts
        series = alarms.series
        inside = bins.bin_index(series.times) >= 0
        codes, counts = np.unique(series.codes[inside], return_counts=True)
        self._codes.update(dict(zip(codes.tolist(), counts.tolist(), strict=True)))
        self._code_machines.update(codes.tolist())
        index = self._buckets.bin_index(series.times[inside])
        self._bucket_alarms += np.bincount(index, minlength=len(self._bucket_alarms))
        parts = self._buckets.within(bins.clipped(*monitored))
        np.add.at(self._bucket_monitored, parts.groups, parts.ends - parts.starts)
        self._floods += machine_floods(machine.id, alarms, bins, to_us(self._grouping.until), self._catalogue)
        self._chatter += machine_chatter(machine.id, alarms, bins, self._catalogue)
        self._standing += machine_standing(machine.id, alarms, bins, self._catalogue)

    def _with_activity(
        self, total: AlarmCounts, machine: Machine, bins: TimeBins, activity: Activity
    ) -> AlarmCounts:
        self._activity.add(activity, bins)
        stale, active, stops = activity.stale(bins), activity.active(), activity.stops
        self._stale += [] if stale is None else active_views(machine.id, stale, self._catalogue)
        self._active += [] if active is None else active_views(machine.id, active, self._catalogue)
        return replace(
            total,
            stale=None if stale is None else len(stale),
            active=None if active is None else len(active),
            downtime_us=None if stops is None else int(stops.overlap(bins).sum()),
        )

    def result(self, machines: int) -> AlarmMetrics:
        """Return the metrics of all machines that were added, sorted."""
        rows = list(self._rows.items())
        if self._grouping.by is AlarmMetricsGrouping.CODE:  # the rate of a code is over the time of all machines
            rows = [(key, replace(counts, monitored_us=self._total.monitored_us)) for key, counts in rows]
        edges = zip(self._buckets.starts.tolist(), self._buckets.ends.tolist(), strict=True)
        counted = zip(self._bucket_alarms.tolist(), self._bucket_monitored.tolist(), strict=True)
        return AlarmMetrics(
            since=self._grouping.since,
            until=self._grouping.until,
            machines=machines,
            excluded=self.excluded,
            total=self._total,
            rows=sorted(rows, key=self._grouping.sort_key),
            codes=[
                self._top_code(code, alarms)
                for code, alarms in sorted(self._counted().items(), key=lambda item: (-item[1], item[0]))
            ],
            floods=sorted(self._floods, key=lambda one: (-to_us(one.start), one.site, one.machine)),
            chatter=sorted(self._chatter, key=lambda one: (-one.alarms, one.site, one.machine, one.code)),
            standing=sorted(
                self._standing, key=lambda one: (one.since - one.last_at, one.site, one.machine, one.code)
            ),
            stale=sorted(self._stale, key=_longest_first),
            active=sorted(self._active, key=_longest_first),
            bucket=self._length,
            time_zone=self._zone,
            rate=[
                Bucket(from_us(start), from_us(end), alarms, monitored_us)
                for (start, end), (alarms, monitored_us) in zip(edges, counted, strict=True)
            ],
            truncated=self.truncated,
        )

    def _counted(self) -> dict[int, int]:
        """Return the alarms by code, with codes that were only the reason of a stop."""
        return dict.fromkeys(self._activity.downtime_us, 0) | self._codes

    def _top_code(self, code: int, alarms: int) -> TopCodeView:
        entry = self._catalogue[code]
        return TopCodeView(
            code=code,
            text=entry.text,
            severity=entry.severity,
            alarms=alarms,
            share=round(alarms / max(self._total.alarms, 1), 4),
            machines=self._code_machines[code],
            **self._activity.figures(code),
        )

    def _groups(
        self, alarms: MachineAlarms, bins: TimeBins, monitored: tuple[int, int], total: AlarmCounts
    ) -> Iterable[tuple[int, AlarmCounts]]:
        if self._grouping.by in (AlarmMetricsGrouping.SITE, AlarmMetricsGrouping.MACHINE):
            return [(0, total)]
        if self._grouping.by is AlarmMetricsGrouping.CODE:
            return count_by_code(alarms, bins)
        return count_by_group(alarms, bins, monitored)
