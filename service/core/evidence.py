"""What a forecast of one machine is made from, as the store has it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from forecasting.series import AlarmSeries
from service.core.history import GapRecord


@dataclass(frozen=True, eq=False)
class Evidence:
    """A machine's alarms in a span, the gaps that touch it, and when its whole history begins and ends."""

    series: AlarmSeries
    gaps: Sequence[GapRecord]
    first_at: datetime | None
    last_at: datetime | None
