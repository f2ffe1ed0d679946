"""How much of each kind one machine may keep in the store, and what is known of the rest.

Whatever one machine can add without end would sooner or later stop all the others.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from wire.identity import MachineId


@dataclass(frozen=True)
class MachineLimits:
    """The limits of one machine; an ordinary machine stays far below each of them.

    ``unenrolled`` is how many machines are listed, in all, that publish without being enrolled. ``samples`` is
    how many items of each reason are quarantined even when the machine's share is full.
    """

    gaps: int = 1_000
    epochs: int = 10_000
    quarantined: int = 5_000
    quarantined_bytes: int = 16_000_000
    samples: int = 10
    unenrolled: int = 1_000


class ExcessKind(StrEnum):
    """What a machine had too much of."""

    GAPS = "gaps"
    EPOCHS = "epochs"
    QUARANTINE = "quarantine"
    UNENROLLED = "unenrolled"


class Excess(NamedTuple):
    """What one machine had too much of: how many items, and when. ``machine`` is None where none is known."""

    machine: MachineId | None
    kind: ExcessKind
    items: int
    since: datetime
    last_at: datetime
