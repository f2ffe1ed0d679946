"""Stored alarms to the figures of alarm management: rate and band, top codes, floods, chatter, standing alarms."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from threading import BoundedSemaphore
from zoneinfo import ZoneInfo

import numpy as np

from forecasting.series import AlarmSeries
from service.alarm_metrics.exclusions import ExcludedSpan, exclude
from service.alarm_metrics.findings import (
    Bucket,
    CodeCount,
    MachineChatter,
    MachineFlood,
    MachineStanding,
    chatter_found,
    floods_found,
    standing_found,
)
from service.alarm_metrics.models import AlarmCounts, MachineAlarms, count_by_code, count_by_slice
from service.alarm_metrics.standing import LEAD
from service.alarm_metrics.time_bins import TimeBins, by_daily_times, by_days, by_hours
from service.errors import InputRejected, Unavailable
from service.machines.event_store import EventStore
from service.machines.models import Agent, Machine, MachineReader, chosen_machines, chosen_span
from wire.clock import PlantClock
from wire.enums import AlarmMetricsGrouping, BucketLength
from wire.timestamps import EARLIEST, from_us, to_us
from wire.zones import common_zone

DEFAULT_SPAN = timedelta(days=7)
MAX_SPAN = timedelta(days=92)
HOURS_UP_TO = timedelta(days=7)
MOST_READ = 1_000_000  # alarms of one machine
PATIENCE = 5.0  # seconds that a request waits while others are computed
_AT_ONCE = 2
_HOURS = [time(hour) for hour in range(24)]


@dataclass(frozen=True)
class AlarmMetricsQuery:
    """Which alarms figures are about; all machines and the last seven plant days unless told otherwise."""

    by: AlarmMetricsGrouping = AlarmMetricsGrouping.MACHINE
    site: str | None = None
    machine: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    shift: str | None = None


@dataclass(frozen=True)
class GroupKey:
    """What a line is about; of these the one that it is by, with a machine its site too."""

    site: str | None = None
    machine: str | None = None
    shift: str | None = None
    code: int | None = None
    day: date | None = None
    hour: int | None = None


@dataclass(frozen=True)
class AlarmMetrics:
    """The figures of a span: the worst lines, the commonest codes, the newest floods first.

    ``truncated`` is how many machines had so many alarms that only the newest of them were counted.
    """

    since: datetime
    until: datetime
    machines: int
    left_out: int
    total: AlarmCounts
    lines: list[tuple[GroupKey, AlarmCounts]]
    codes: list[CodeCount]
    floods: list[MachineFlood]
    chatter: list[MachineChatter]
    standing: list[MachineStanding]
    bucket: BucketLength
    time_zone: str
    rate: list[Bucket]
    truncated: int = 0


def nothing_excluded(_since: datetime, _until: datetime) -> Collection[ExcludedSpan]:
    """Leave nothing out."""
    return ()


@dataclass(frozen=True)
class AlarmMetricsService:
    """Reads a machine at a time, so that a long span of a large fleet needs little memory.

    ``left_out`` names the codes that were shelved somewhere in a span; their alarms are taken out of every figure.
    """

    machines: MachineReader
    log: EventStore
    clock: PlantClock
    shifts: Mapping[str, time]
    left_out: Callable[[datetime, datetime], Collection[ExcludedSpan]] = nothing_excluded
    most_read: int = MOST_READ
    patience: float = PATIENCE
    room: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(_AT_ONCE))

    def compute(self, query: AlarmMetricsQuery) -> AlarmMetrics:
        """Return the figures that a query asks for; few are computed at a time: they may take much memory."""
        if not self.room.acquire(timeout=self.patience):
            raise Unavailable("Figures are being computed for others; ask again, or for a shorter span.")
        try:
            return self._figures(query)
        finally:
            self.room.release()

    def _figures(self, query: AlarmMetricsQuery) -> AlarmMetrics:
        since, until = chosen_span(
            query.since, query.until, now=self.clock.now(), usual=DEFAULT_SPAN, longest=MAX_SPAN
        )
        ruler = _Grouping(query, since, until, self.shifts)
        machines = chosen_machines(self.machines, query.site, query.machine)
        sums = _Accumulator(ruler, common_zone(machine.time_zone for machine in machines))
        agents = self.machines.agents()
        lead = max(since - LEAD, EARLIEST)
        shelved = self.left_out(lead, until)
        for machine in machines:
            series = self.log.newest(machine, lead, until, self.most_read + 1)
            if len(series) > self.most_read:
                series = AlarmSeries(series.times[1:], series.codes[1:])
                sums.truncated += 1
            kept = exclude(series, machine.id, shelved)
            slices = ruler.slices(machine)
            if kept is not series:
                sums.left_out += _inside(slices, MachineAlarms(series)) - _inside(slices, MachineAlarms(kept))
            sums.take(machine, MachineAlarms(kept), slices, self._monitored_span(machine, agents.get(machine.id)))
        return sums.figures(len(machines))

    def _monitored_span(self, machine: Machine, agent: Agent | None) -> tuple[int, int]:
        """Return from when to when a machine was heard, by its alarms or its agent's signs of life.

        Before and after nobody knows what it raised, and a rate over that time would be too low.
        """
        first, last = self.log.first_at(machine), self.log.last_at(machine)
        heard = [at for at in (first, last) if at is not None]
        if agent is not None:
            heard += [agent.since or agent.last_seen_at, agent.last_seen_at]
        return (to_us(min(heard)), to_us(max(heard))) if heard else (0, 0)


class _Grouping:
    """Cuts the span into slices for each machine, by the clock on its own wall; cut once for each time zone."""

    def __init__(
        self, query: AlarmMetricsQuery, since: datetime, until: datetime, shifts: Mapping[str, time]
    ) -> None:
        if query.shift is not None and query.shift not in shifts:
            raise InputRejected(f"There is no shift {query.shift!r}; there are {', '.join(shifts)}.")
        self.by, self.since, self.until = query.by, since, until
        self._shift, self._shifts = query.shift, shifts
        self._names = list(shifts)
        self._cut: dict[str, TimeBins] = {}

    def slices(self, machine: Machine) -> TimeBins:
        """Return the slices that count, a group for each line that a machine can have in time."""
        if machine.time_zone not in self._cut:
            self._cut[machine.time_zone] = self._slices(ZoneInfo(machine.time_zone))
        return self._cut[machine.time_zone]

    def key(self, machine: Machine, group: int) -> GroupKey:
        """Return the line that a machine's group belongs to."""
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

    def worst_first(self, line: tuple[GroupKey, AlarmCounts]) -> tuple[object, ...]:
        """Order lines: in time where they are of time, otherwise the most alarms first."""
        key, tally = line
        if key.shift is not None:
            return (self._names.index(key.shift),)
        if key.day is not None or key.hour is not None:
            return (key.day or date.min, key.hour or 0)
        return (-tally.alarms, key.site or "", key.machine or "", key.code or 0)

    def _slices(self, zone: ZoneInfo) -> TimeBins:
        span = (self.since, self.until)
        shifts = by_daily_times(*span, zone, list(self._shifts.values()))
        if self.by is AlarmMetricsGrouping.SHIFT:
            cut = shifts
        elif self.by is AlarmMetricsGrouping.DAY:
            cut = by_days(*span, zone)
        elif self.by is AlarmMetricsGrouping.HOUR:
            cut = by_daily_times(*span, zone, _HOURS)
        else:
            cut = TimeBins.whole(to_us(self.since), to_us(self.until))
        return cut if self._shift is None else cut.within(shifts.for_group(self._names.index(self._shift)))


class _Accumulator:
    """What grows machine by machine."""

    def __init__(self, ruler: _Grouping, zone: str) -> None:
        span = (ruler.since, ruler.until)
        short = ruler.until - ruler.since <= HOURS_UP_TO
        self._ruler, self._zone = ruler, zone
        self._length = BucketLength.HOUR if short else BucketLength.DAY
        cut = by_hours(*span, ZoneInfo(zone)) if short else by_days(*span, ZoneInfo(zone))
        self._buckets = TimeBins(cut.starts, cut.ends, np.arange(len(cut.starts)))
        self._bucket_alarms = np.zeros(len(cut.starts), dtype=np.int64)
        self._bucket_time = np.zeros(len(cut.starts), dtype=np.int64)
        self._total = AlarmCounts()
        self._lines: dict[GroupKey, AlarmCounts] = {}
        self._codes: Counter[int] = Counter()
        self._raisers: Counter[int] = Counter()
        self._floods: list[MachineFlood] = []
        self._chatter: list[MachineChatter] = []
        self._standing: list[MachineStanding] = []
        self.left_out = self.truncated = 0

    def take(self, machine: Machine, seen: MachineAlarms, slices: TimeBins, watched: tuple[int, int]) -> None:
        """Add a machine."""
        whole = next((one for _, one in count_by_slice(seen, slices.ungrouped(), watched)), AlarmCounts())
        self._total += whole
        for key, tally in self._of_lines(machine, seen, slices, watched, whole):
            self._lines[key] = self._lines[key] + tally if key in self._lines else tally
        inside = slices.bin_index(seen.series.times) >= 0
        codes, counts = np.unique(seen.series.codes[inside], return_counts=True)
        self._codes.update(dict(zip(codes.tolist(), counts.tolist(), strict=True)))
        self._raisers.update(codes.tolist())
        places = self._buckets.bin_index(seen.series.times[inside])
        self._bucket_alarms += np.bincount(places, minlength=len(self._bucket_alarms))
        heard = self._buckets.within(slices.clipped(*watched))
        np.add.at(self._bucket_time, heard.groups, heard.ends - heard.starts)
        self._floods += floods_found(machine.id, seen, slices, to_us(self._ruler.until))
        self._chatter += chatter_found(machine.id, seen, slices)
        self._standing += standing_found(machine.id, seen, slices)

    def figures(self, machines: int) -> AlarmMetrics:
        """Return all that was added, in the order in which it is shown."""
        lines = self._lines.items()
        if self._ruler.by is AlarmMetricsGrouping.CODE:  # a code's rate is over the time of all machines
            whole = self._total.monitored_us
            lines = {key: replace(tally, monitored_us=whole) for key, tally in lines}.items()
        edges = zip(self._buckets.starts.tolist(), self._buckets.ends.tolist(), strict=True)
        counted = zip(self._bucket_alarms.tolist(), self._bucket_time.tolist(), strict=True)
        return AlarmMetrics(
            since=self._ruler.since,
            until=self._ruler.until,
            machines=machines,
            left_out=self.left_out,
            total=self._total,
            lines=sorted(lines, key=self._ruler.worst_first),
            codes=[
                CodeCount(code, alarms, alarms / self._total.alarms, self._raisers[code])
                for code, alarms in sorted(self._codes.items(), key=lambda one: (-one[1], one[0]))
            ],
            floods=sorted(self._floods, key=lambda one: (-one.flood.start_us, one.machine)),
            chatter=sorted(self._chatter, key=lambda one: (-one.alarms, one.machine, one.code)),
            standing=sorted(
                self._standing, key=lambda one: (one.run.first_us - one.run.last_us, one.machine, one.run.code)
            ),
            bucket=self._length,
            time_zone=self._zone,
            rate=[
                Bucket(from_us(start), from_us(end), alarms, watched)
                for (start, end), (alarms, watched) in zip(edges, counted, strict=True)
            ],
            truncated=self.truncated,
        )

    def _of_lines(
        self, machine: Machine, seen: MachineAlarms, slices: TimeBins, watched: tuple[int, int], whole: AlarmCounts
    ) -> Iterator[tuple[GroupKey, AlarmCounts]]:
        if self._ruler.by in (AlarmMetricsGrouping.SITE, AlarmMetricsGrouping.MACHINE):
            yield self._ruler.key(machine, 0), whole
            return
        of_code = self._ruler.by is AlarmMetricsGrouping.CODE
        for group, tally in count_by_code(seen, slices) if of_code else count_by_slice(seen, slices, watched):
            yield self._ruler.key(machine, group), tally


def _inside(slices: TimeBins, seen: MachineAlarms) -> int:
    return int((slices.bin_index(seen.series.times) >= 0).sum())
