"""The schedule of a simulated machine: days off, shift, and stoppages of days or weeks."""

import math
from functools import lru_cache
from typing import NamedTuple

from edge_agent.simulator.profile import MachineProfile
from edge_agent.simulator.rng import seeded_rng

HOUR = 3600.0
DAY = 24 * HOUR
MAX_STOPPAGE_DAYS = 20
LONG_SILENCE_DAYS = 7  # a start after it may cause a flood
_STOPPAGE_CHANCE = 1 / 110
_PEAK_HOUR, _AMPLITUDE = 12.5, 0.15
# Monday to Sunday; what the weeks of the published fleet show beyond its days off.
_WEEKDAY_LOAD = (0.95, 1.04, 1.0, 0.92, 0.97, 1.05, 1.08)


class Shift(NamedTuple):
    """The seconds, counted from the plant's first day, between which a machine runs."""

    start: float
    end: float


def shift(machine: MachineProfile, day: int) -> Shift | None:
    """Return the shift that starts on ``day`` (a proleptic ordinal), or None where the machine rests."""
    if (day - 1) % 7 in machine.days_off or _stopped(machine.seed, machine.index, day):
        return None
    late = seeded_rng(machine.seed, machine.index, "shift", day).uniform(0.0, 0.4)
    start = day * DAY + (machine.shift_start + late) * HOUR
    return Shift(start, day * DAY + (machine.shift_start + machine.shift_hours) * HOUR)


def next_running_moment(machine: MachineProfile, moment: float) -> float | None:
    """Return ``moment``, or the start of the next shift where the machine rests; None if that is days off."""
    day = int(moment // DAY)
    for candidate in (day - 1, day, day + 1):
        running = shift(machine, candidate)
        if running and moment < running.end:
            return max(moment, running.start)
    return None


def days_since_last_run(machine: MachineProfile, day: int) -> int:
    """Return how many days before ``day`` the machine has rested, as far back as a long silence goes."""
    days = 0
    while days < LONG_SILENCE_DAYS and shift(machine, day - 1 - days) is None:
        days += 1
    return days


def activity_factor(moment: float) -> float:
    """Return the relative activity at ``moment``, around 1: it varies by hour and weekday."""
    day, seconds = divmod(moment, DAY)
    hour = seconds / HOUR
    noon = 1 + _AMPLITUDE * math.cos((hour - _PEAK_HOUR) / 24 * 2 * math.pi)
    return noon * _WEEKDAY_LOAD[(int(day) - 1) % 7]


def _stopped(seed: int, index: int, day: int) -> bool:
    return any(_stoppage(seed, index, day - ago) > ago for ago in range(MAX_STOPPAGE_DAYS))


@lru_cache(maxsize=1024)
def _stoppage(seed: int, index: int, day: int) -> int:
    """Return for how many days the stoppage that starts on ``day`` lasts; mostly there is none."""
    rng = seeded_rng(seed, index, "stoppage", day)
    if rng.random() >= _STOPPAGE_CHANCE:
        return 0
    return min(MAX_STOPPAGE_DAYS, math.ceil(rng.lognormvariate(math.log(3), 1.0)))
