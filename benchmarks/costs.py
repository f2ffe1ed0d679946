"""What one more machine and one more event cost, told apart by a spell with many more events."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.spell import Spell

_DAY = 86_400


@dataclass(frozen=True)
class Costs:
    """CPU time of each program: microseconds an event, seconds a machine and day without its events.

    The latter are its states, its forecasts on the grid and in between, and whatever else its being there takes.
    """

    us_an_event: dict[str, float]
    seconds_a_machine_day: dict[str, float]
    forecast_ms: float | None


def costs(spells: Sequence[Spell], machines: int) -> Costs:
    """Compare the spell with many alarms with the one before it, at the same speed."""
    place = next(place for place, one in enumerate(spells) if one.name == "many alarms")
    usual, busy = spells[place - 1], spells[place]
    more = busy.acked - usual.acked
    an_event = {name: (busy.cores[name] - usual.cores[name]) / more for name in usual.cores}
    machine_days = machines * usual.speed / _DAY  # in a second
    return Costs(
        {name: 1e6 * seconds for name, seconds in an_event.items()},
        {name: (usual.cores[name] - an_event[name] * usual.acked) / machine_days for name in usual.cores},
        None if usual.grid_seconds is None else 1000 * usual.grid_seconds / machines,
    )
