"""What one more machine and one more event cost, separated by a spell with many more events."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.load_phase import Spell

_DAY = 86_400
_REFRESHES_A_DAY = 96


@dataclass(frozen=True)
class Costs:
    """CPU time of each program: microseconds an event, seconds a machine and day without its events.

    The latter are its states, its forecasts and all else that its being there takes; the grid's forecasts are
    missing where no refresh was seen.
    """

    us_an_event: dict[str, float]
    seconds_a_machine_day: dict[str, float]


def costs(spells: Sequence[Spell], machines: int) -> Costs:
    """Tell events from machines by the spell with many alarms; a day's refreshes are the machines'."""
    named = {one.name: one for one in spells}
    usual, busy, refresh = named["usual"], named["many alarms"], named["a refresh"]
    more = busy.acked - usual.acked
    an_event = {name: (busy.cores[name] - usual.cores[name]) / more for name in usual.cores}
    seen = 0.0 if refresh.refresh is None else refresh.seconds
    refreshing = {name: (refresh.cores[name] - usual.cores[name]) * seen for name in usual.cores}
    return Costs(
        {name: 1e6 * seconds for name, seconds in an_event.items()},
        {
            name: ((usual.cores[name] - an_event[name] * usual.acked) * _DAY + refreshing[name] * _REFRESHES_A_DAY)
            / machines
            for name in usual.cores
        },
    )
