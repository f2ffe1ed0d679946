"""Cleared alarms and stops, as series of codes in time."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from sqlalchemy import text

from forecasting.series import AlarmSeries
from service.database.dialect import integers
from service.database.engine import Database
from service.database.event_row import flag_of
from service.machines.models import Machine
from wire.events import TransitionKind
from wire.timestamps import from_us, to_us

_KINDS = (TransitionKind.CLEARED, TransitionKind.STOPPED, TransitionKind.RESUMED)
_FLAGS = ", ".join(str(flag_of(kind)) for kind in _KINDS)
# With the words of the partial index.
_OF_MACHINE = f"FROM events WHERE machine_id = :machine AND flag <> 0 AND flag IN ({_FLAGS})"
_NEWEST = text(
    f"SELECT at_us, code, flag {_OF_MACHINE} AND at_us >= :start AND at_us < :end"
    " ORDER BY at_us DESC, epoch_id DESC, seq DESC LIMIT :most"
)
_FIRST = text(f"SELECT at_us, epoch_id {_OF_MACHINE} ORDER BY at_us LIMIT 1")
_FIRST_OF_EPOCH = text("SELECT at_us FROM events WHERE epoch_id = :epoch ORDER BY seq LIMIT 1")
_BEFORE_FIRST = timedelta(hours=24)


@dataclass(frozen=True)
class TransitionStore:
    """Reads what the agents say of alarms after their raise."""

    database: Database

    def known_since(self, machine: Machine) -> datetime | None:
        """Return since when a machine's clears and stops are known, None if it reports none.

        That is from the start of the first spool that has one, at most 24 hours before it: an older agent may have
        used the same spool.
        """
        with self.database.read() as connection:
            first = connection.execute(_FIRST, {"machine": machine.row_id}).one_or_none()
            if first is None:
                return None
            begun = connection.execute(_FIRST_OF_EPOCH, {"epoch": first.epoch_id}).scalar_one()
        return max(from_us(min(begun, first.at_us)), from_us(first.at_us) - _BEFORE_FIRST)

    def series(
        self, machine: Machine, start: datetime, end: datetime, most: int
    ) -> dict[TransitionKind, AlarmSeries]:
        """Return the newest ``most`` transitions in ``[start, end)`` by kind, in time order."""
        bounds = {"machine": machine.row_id, "start": to_us(start), "end": to_us(end), "most": most}
        with self.database.read() as connection:
            table = integers(connection, _NEWEST, bounds, 3)[::-1]
        found = {}
        for kind in _KINDS:
            rows = table[table[:, 2] == flag_of(kind)]
            found[kind] = AlarmSeries(np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1]))
        return found
