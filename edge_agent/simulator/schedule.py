"""When a simulated machine runs: its week, its shift, and the stoppages of days or weeks in between."""

import math
from functools import lru_cache
from typing import NamedTuple

from edge_agent.simulator.profile import MachineProfile
from edge_agent.simulator.rng import seeded_rng

HOUR = 3600.0
DAY = 24 * HOUR
LONGEST_STOPPAGE = 20  # days
LONG_SILENCE = 7  # days; a start after it may end in a flood
_STOPPAGE_CHANCE = 1 / 110
_LIVELIEST_HOUR, _SWING = 12.5, 0.15
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
    while days < LONG_SILENCE and shift(machine, day - 1 - days) is None:
        days += 1
    return days


def activity_factor(moment: float) -> float:
    """Return how much is going on at ``moment``, around 1: more at noon than at night, and by weekday."""
    day, seconds = divmod(moment, DAY)
    hour = seconds / HOUR
    noon = 1 + _SWING * math.cos((hour - _LIVELIEST_HOUR) / 24 * 2 * math.pi)
    return noon * _WEEKDAY_LOAD[(int(day) - 1) % 7]


def _stopped(seed: int, index: int, day: int) -> bool:
    return any(_stoppage(seed, index, day - ago) > ago for ago in range(LONGEST_STOPPAGE))


@lru_cache(maxsize=1024)
def _stoppage(seed: int, index: int, day: int) -> int:
    """Return for how many days the stoppage that starts on ``day`` lasts; mostly there is none."""
    die = seeded_rng(seed, index, "stoppage", day)
    if die.random() >= _STOPPAGE_CHANCE:
        return 0
    return min(LONGEST_STOPPAGE, math.ceil(die.lognormvariate(math.log(3), 1.0)))
