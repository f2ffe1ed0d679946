"""What is known of a machine's alarms after their raise: how long they were active, and what it stood for."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from forecasting.series import AlarmSeries
from service.alarm_metrics.durations import STALE_US, Moments, Spans, spans
from service.alarm_metrics.models import ExcludedSpan
from service.alarm_metrics.time_bins import TimeBins
from service.machines.catalogue import Catalogue
from service.machines.event_store import EventStore
from service.machines.models import Machine
from service.machines.transition_store import TransitionStore
from wire.events import TransitionKind
from wire.identity import MachineId
from wire.rest.alarm_metrics import ActiveAlarmView
from wire.timestamps import EARLIEST, from_us, to_us

LOOKBACK = timedelta(days=31)  # an alarm that was raised longer before a span is not known to be active in it


@dataclass(frozen=True)
class Activity:
    """Active alarms and stops of a machine; None where it reports no clears, or no stops."""

    alarms: Spans | None
    stops: Spans | None

    def without(self, machine: MachineId, excluded: Collection[ExcludedSpan]) -> "Activity":
        """Return the same without alarms that were raised while they were shelved."""
        if self.alarms is None:
            return self
        keep = np.ones(len(self.alarms), dtype=np.bool_)
        for span in excluded:
            if span.machine == machine:
                within = (self.alarms.starts >= span.start_us) & (self.alarms.starts < span.end_us)
                keep &= ~(within & (self.alarms.codes == span.code))
        return Activity(self.alarms.where(keep), self.stops)

    def stale(self, bins: TimeBins) -> Spans | None:
        """Return the alarms in the bins that were active for more than 24 hours."""
        if self.alarms is None:
            return None
        return self.alarms.where((self.alarms.lengths > STALE_US) & (self.alarms.overlap(bins) > 0))

    def active(self) -> Spans | None:
        """Return the alarms that are active at the end of what is known."""
        return None if self.alarms is None else self.alarms.where(self.alarms.is_open)


NO_ACTIVITY = Activity(None, None)


def read_activity(
    events: EventStore, machine: Machine, since: datetime, until: datetime, *, known_until: datetime, most: int
) -> Activity:
    """Read how long the alarms of a span were active; ``most`` limits the alarms and the transitions read."""
    transitions = TransitionStore(events.database)
    known = transitions.known_since(machine)
    if known is None or known >= until:
        return NO_ACTIVITY
    start = max(since - LOOKBACK, known) if since - EARLIEST > LOOKBACK else known
    raised = events.newest(machine, start, until, most)
    changes = transitions.series(machine, start, until, most)
    if sum(map(len, changes.values())) >= most:  # of older alarms the clears were not read
        first = min(int(series.times[0]) for series in changes.values() if len(series))
        raised = raised.between(from_us(first), until)
    gaps = np.sort(np.array([to_us(gap.first_at) for gap in events.gaps(machine, start, until)], dtype=np.int64))
    end_us = to_us(min(until, max(known_until, _last(changes.values(), start))))
    cleared, stopped = changes[TransitionKind.CLEARED], changes[TransitionKind.STOPPED]
    return Activity(
        spans(raised, cleared, gaps, end_us) if len(cleared) else None,
        spans(stopped, changes[TransitionKind.RESUMED], gaps, end_us) if len(stopped) else None,
    )


def _last(series: Collection[AlarmSeries], otherwise: datetime) -> datetime:
    return max((from_us(int(one.times[-1])) for one in series if len(one)), default=otherwise)


def active_views(machine: MachineId, found: Spans, catalogue: Catalogue) -> list[ActiveAlarmView]:
    """Return active alarms as REST sends them."""
    rows = zip(
        found.codes.tolist(), found.starts.tolist(), found.ends.tolist(), found.is_open.tolist(), strict=True
    )
    return [
        ActiveAlarmView(
            site=machine.site,
            machine=machine.machine,
            code=code,
            text=catalogue[code].text,
            severity=catalogue[code].severity,
            since=from_us(start),
            until=None if is_open else from_us(end),
            seconds=round((end - start) / 1e6, 1),
        )
        for code, start, end, is_open in rows
    ]


class CodeActivity:
    """Durations and downtime by code, summed over machines."""

    def __init__(self) -> None:
        self._lengths: dict[int, list[Moments]] = {}
        self._active_us: dict[int, int] = {}
        self.downtime_us: dict[int, int] = {}

    def add(self, activity: Activity, bins: TimeBins) -> None:
        """Add a machine: the length of alarms that were raised in the bins, and the time inside of them."""
        if activity.alarms is not None:
            alarms = activity.alarms
            counted = alarms.ended & (bins.bin_index(alarms.starts) >= 0)
            for code, total in _sums(alarms, bins).items():
                self._active_us[code] = self._active_us.get(code, 0) + total
                lengths = alarms.lengths[counted & (alarms.codes == code)]
                self._lengths.setdefault(code, []).append(lengths)
        if activity.stops is not None:
            for code, total in _sums(activity.stops, bins).items():
                self.downtime_us[code] = self.downtime_us.get(code, 0) + total

    def figures(self, code: int) -> dict[str, float | None]:
        """Return the figures of a code in seconds, None where they are unknown."""
        lengths = np.concatenate(self._lengths.get(code, [np.zeros(0, dtype=np.int64)]))
        return {
            "median_seconds": seconds(float(np.median(lengths))) if len(lengths) else None,
            "longest_seconds": seconds(float(lengths.max())) if len(lengths) else None,
            "active_seconds": seconds(self._active_us.get(code)),
            "downtime_seconds": seconds(self.downtime_us.get(code)),
        }


def _sums(found: Spans, bins: TimeBins) -> dict[int, int]:
    inside = found.overlap(bins)
    touched = (inside > 0) | (bins.bin_index(found.starts) >= 0)
    codes, place = np.unique(found.codes[touched], return_inverse=True)
    sums = np.zeros(len(codes), dtype=np.int64)
    np.add.at(sums, place, inside[touched])
    return dict(zip(codes.tolist(), sums.tolist(), strict=True))


def seconds(us: float | None) -> float | None:
    """Return microseconds as seconds."""
    return None if us is None else round(us / 1e6, 1)
