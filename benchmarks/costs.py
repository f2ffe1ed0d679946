"""What one more machine and one more event cost, told apart by a spell with many more events."""

from dataclasses import dataclass

from benchmarks.spell import Spell

_DAY = 86_400


@dataclass(frozen=True)
class Costs:
    """CPU time of each program: microseconds an event, seconds a machine and day without its events.

    The latter are its states, its forecasts on the grid and in between, and all else that its being there takes.
    """

    us_an_event: dict[str, float]
    seconds_a_machine_day: dict[str, float]


def costs(usual: Spell, busy: Spell, *, machines: int, speed: float) -> Costs:
    """Compare a spell, which must hold one refresh of the grid, with one that differs in its alarms alone."""
    more = busy.acked - usual.acked
    an_event = {name: (busy.cores[name] - usual.cores[name]) / more for name in usual.cores}
    machine_days = machines * speed / _DAY  # in a second
    return Costs(
        {name: 1e6 * seconds for name, seconds in an_event.items()},
        {name: (usual.cores[name] - an_event[name] * usual.acked) / machine_days for name in usual.cores},
    )
