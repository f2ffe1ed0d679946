"""A simulated machine's alarms in order of time, from any moment on; each day has random numbers of its own."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from edge_agent.simulator.drift import code_weights_on
from edge_agent.simulator.episode import MAX_PAUSE_S, CodeSequence, burst, episode, flood
from edge_agent.simulator.profile import MachineProfile
from edge_agent.simulator.rng import seeded_rng
from edge_agent.simulator.schedule import (
    DAY,
    HOUR,
    LONG_SILENCE_DAYS,
    activity_factor,
    days_since_last_run,
    next_running_moment,
    shift,
)
from edge_agent.simulator.tables import FOLLOW_UP_CODES
from wire.alarm import Alarm

SPILL_DAYS = 4  # what begins on a day is over by the fourth midnight
_FIRST_DAY = datetime.min.replace(tzinfo=UTC)  # its ordinal is 1
_FLOOD_CHANCE = 0.4
_RETURNS = 0.4  # trouble once come may come again
_SAME_AGAIN = 0.1  # the next episode takes up what the last one left
_CLEANING_CHANCE = 0.16  # of a machine that runs around the clock


def alarms(machine: MachineProfile, start: datetime, end: datetime) -> Iterator[Alarm]:
    """Yield the machine's alarms in ``[start, end)``, no two at the same millisecond.

    Days are made only as they are reached, so ``end`` may be as far off as one likes. What an interval
    holds does not depend on where one starts to look: its parts, put together, are the whole.
    """
    first, last = start.astimezone(UTC), end.astimezone(UTC)
    pending: set[tuple[int, int]] = set()
    for day in range(max(1, first.toordinal() - SPILL_DAYS + 1), last.toordinal() + 1):
        pending.update(_begun_on(machine, day))
        midnight = (day + 1) * round(DAY * 1000)
        over = sorted(moment for moment in pending if moment[0] < midnight)
        pending.difference_update(over)
        before = None
        for milliseconds, code in over:
            at = _FIRST_DAY + timedelta(milliseconds=milliseconds - DAY * 1000)
            if at >= last:
                return
            # One alarm per millisecond, so that a time alone tells what has been seen.
            if at >= first and at != before:
                yield Alarm(at, code)
            before = at


def _begun_on(machine: MachineProfile, day: int) -> Iterator[tuple[int, int]]:
    """Yield in milliseconds what begins on ``day``, in no order, cut off where later days stop looking."""
    horizon = (day + SPILL_DAYS) * DAY
    for seconds, code in _fault_episodes(machine, day):
        if seconds < horizon:
            yield int(seconds * 1000), code


def _fault_episodes(machine: MachineProfile, day: int) -> Iterator[tuple[float, int]]:
    running = shift(machine, day)
    if running is None:
        return
    rng = seeded_rng(machine.seed, machine.index, "day", day)
    weights = code_weights_on(machine, day)
    turns = CodeSequence(machine.codes, weights)
    if days_since_last_run(machine, day) >= LONG_SILENCE_DAYS and rng.random() < _FLOOD_CHANCE:
        yield from flood(running.start, machine.codes, weights, rng)
    moment = running.start + rng.expovariate(1 / HOUR)
    code = turns.next_code(None, rng)
    while moment < running.end:
        lively = activity_factor(moment)
        first = code if rng.random() < _SAME_AGAIN else turns.next_code(None, rng)
        happened = list(episode(moment, machine.typical_episode * lively**0.5, turns, rng, first=first))
        yield from happened
        for sign in sorted({code for _, code in happened} & FOLLOW_UP_CODES.keys()):
            yield from _follow_up(machine, sign, happened[-1][0], rng)
        moment, code = happened[-1]
        moment += _single_alarm(machine, rng) / lively


def _follow_up(
    machine: MachineProfile, sign: int, moment: float, rng: random.Random
) -> Iterator[tuple[float, int]]:
    code, chance = FOLLOW_UP_CODES[sign]
    if rng.random() >= chance:
        return
    while True:
        due = next_running_moment(machine, moment + rng.triangular(1, 18, 6) * HOUR)
        if due is None:
            return
        moment = due + rng.expovariate(1 / HOUR)
        yield from burst(moment, code, rng)
        if rng.random() >= _RETURNS:
            return


def _single_alarm(machine: MachineProfile, rng: random.Random) -> float:
    """Return the seconds until the next episode may start: production, or a cleaning that takes hours."""
    if rng.random() < _CLEANING_CHANCE * machine.shift_hours / 24:
        return rng.lognormvariate(0.0, 0.5) * 6.5 * HOUR
    return MAX_PAUSE_S + rng.lognormvariate(0.0, 1.1) * 0.36 * HOUR
