"""A row of the table of events, and what its time flag says."""

from typing import NamedTuple
from uuid import UUID

IN_TIME, FROM_THE_FUTURE, TOO_OLD = 0, 1, 2


class EventRow(NamedTuple):
    """An event as it will stand in the store."""

    machine: int
    epoch: UUID
    seq: int
    code: int
    at_us: int
    flag: int
