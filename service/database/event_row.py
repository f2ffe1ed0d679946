"""Row of the table ``events`` and its time flags."""

from typing import NamedTuple
from uuid import UUID

IN_TIME, FROM_THE_FUTURE, TOO_OLD = 0, 1, 2


class EventRow(NamedTuple):
    """An event to be stored."""

    machine: int
    epoch: UUID
    seq: int
    code: int
    at_us: int
    flag: int
