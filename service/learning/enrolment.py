"""The wish to enrol a machine, and what it leads to."""

from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from math import ceil

from service.learning.code_limits import CodeLimits
from wire.identity import MachineId


@dataclass(frozen=True)
class NewMachine:
    """A machine to enrol; what is not given stays as it was, if it was there before."""

    id: MachineId
    name: str | None = None
    time_zone: str | None = None
    catalogue: str | None = None

    @property
    def fingerprint(self) -> str:
        """What two requests have in common if they ask for the same."""
        parts = (*self.id, self.name or "", self.time_zone or "", self.catalogue or "")
        return sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Enrolled:
    """The job that learns the machine, and whether the machine is new."""

    job: int
    is_new: bool


@dataclass(frozen=True)
class TrainingDataPolicy:
    """How a machine's windows are shared out in time, and how many there must be.

    The last ``exam`` share is never learned from; of what lies before, the last ``calibration`` share makes
    probabilities honest; ``fewest`` windows must be left to learn from. Two weeks of hours are the least that
    says something about a week's rhythm. ``codes`` says how many alarm codes are learned.
    """

    exam: float = 0.3
    calibration: float = 0.15
    min_windows: int = 336
    keep: timedelta = timedelta(days=400)
    codes: CodeLimits = field(default_factory=CodeLimits)

    def days_until_enough(self, windows: int) -> int:
        """Return for about how many more days a machine with so many windows to learn from must be heard."""
        share = (1 - self.exam) * (1 - self.calibration)
        return ceil(max(self.min_windows - windows, 0) / share / 24)
