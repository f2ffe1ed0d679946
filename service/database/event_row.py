"""Row of the table ``events`` and its flag.

The flag is ``kind * 4 + time flag``: kind 0 is an alarm that was raised, the others are the numbers of
:class:`TransitionKind`. So ``flag = 0`` selects raised alarms whose time is believed.
"""

from typing import NamedTuple
from uuid import UUID

from wire.events import TransitionKind

IN_TIME, FROM_THE_FUTURE, TOO_OLD = 0, 1, 2
TIME_FLAGS = {FROM_THE_FUTURE: "from_the_future", TOO_OLD: "too_old"}
_TIME_FLAGS = 4


class EventRow(NamedTuple):
    """An event or transition to be stored."""

    machine: int
    epoch: UUID
    seq: int
    code: int
    at_us: int
    flag: int


def flag_of(kind: TransitionKind | None, time_flag: int = IN_TIME) -> int:
    """Return the flag of a kind, None for a raised alarm."""
    return time_flag if kind is None else kind.number * _TIME_FLAGS + time_flag


def kind_of(flag: int) -> TransitionKind | None:
    """Return the kind of a row, None for a raised alarm."""
    return TransitionKind.of_number(flag // _TIME_FLAGS) if flag >= _TIME_FLAGS else None


def time_flag_of(flag: int) -> str | None:
    """Return why a row's time is not believed, if it is not."""
    return TIME_FLAGS.get(flag % _TIME_FLAGS)


def flags_in(kind: TransitionKind | None, *, flagged: bool) -> str:
    """Return the condition for rows of a kind, in the words of the partial index that serves it."""
    first = flag_of(kind)
    if flagged:
        return f"flag <> 0 AND flag IN ({first + FROM_THE_FUTURE}, {first + TOO_OLD})"
    return f"flag <> 0 AND flag = {first}" if first else "flag = 0"
