"""Standing alarms: what comes closest to ISA-18.2's *stale* alarm in a log that knows no end of an alarm.

The standard calls an alarm stale that is active for more than 24 hours. Machines here say that an alarm was
raised and never that it cleared, so nobody can know how long one was active. What can be seen is a code that is
raised again and again: one that has come for more than 24 hours without a pause of more than an hour has been
with the people at the machine for a day, whether it was active all the time or not. An alarm that is raised once
and stays active is missed; the log has no sign of it.
"""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from forecasting.series import AlarmSeries
from service.alarm_metrics.chatter import by_code, run_starts

LONGER_THAN = timedelta(hours=24)
LONGEST_PAUSE = timedelta(hours=1)
LEAD = LONGER_THAN + 2 * LONGEST_PAUSE  # a run that is older than this is known to stand, wherever it began
_LONGER_US, _PAUSE_US = (length // timedelta(microseconds=1) for length in (LONGER_THAN, LONGEST_PAUSE))


@dataclass(frozen=True)
class StandingAlarm:
    """A code that came ``alarms`` times from ``first_us`` to ``last_us``, never an hour and more apart."""

    code: int
    first_us: int
    last_us: int
    alarms: int


def standing(series: AlarmSeries) -> list[StandingAlarm]:
    """Return the standing alarms of one machine, the longest first."""
    order = by_code(series)
    times, codes = series.times[order], series.codes[order]
    starts = run_starts(times, codes, _PAUSE_US)
    lasts = np.append(starts[1:], len(times))[: len(starts)] - 1
    long = np.flatnonzero(times[lasts] - times[starts] > _LONGER_US)
    found = [
        StandingAlarm(
            int(codes[starts[run]]),
            int(times[starts[run]]),
            int(times[lasts[run]]),
            int(lasts[run] - starts[run] + 1),
        )
        for run in long
    ]
    return sorted(found, key=lambda run: (run.first_us - run.last_us, run.code))
